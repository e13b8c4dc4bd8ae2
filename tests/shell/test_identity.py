"""Ids are UUIDv7 and only climb."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from tidemill.shell.identity import Mint, new_id

NOW_MS = 1_767_225_600_000


def test_an_id_is_a_version_7_uuid_of_its_instant() -> None:
    made = Mint().new(NOW_MS)
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == NOW_MS


def test_ids_of_one_millisecond_climb() -> None:
    mint = Mint()
    made = [mint.new(NOW_MS) for _ in range(10_000)]
    assert all(one < other for one, other in pairwise(made))


def test_ids_climb_when_the_clock_is_set_back() -> None:
    mint = Mint()
    made = [mint.new(ms) for ms in (NOW_MS, NOW_MS - 5_000, NOW_MS - 1, NOW_MS, NOW_MS + 1)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_millisecond_that_is_used_up_gives_way_to_the_next() -> None:
    mint = Mint()
    mint.new(NOW_MS)
    mint._entropy = (1 << 74) - 1
    before = mint._entropy
    made = mint.new(NOW_MS)
    assert made.int >> 80 == NOW_MS + 1
    assert mint._entropy < before


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: new_id(), range(4_000)))
    assert len(set(made)) == 4_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_while_an_id_is_made_makes_its_own():
    """Run apart: a fork beside this process's own threads would copy them half."""
    script = """
import os
from tidemill.shell import identity
identity._mint._lock.acquire()  # as another thread would hold it at the fork
child = os.fork()
if child == 0:
    identity.new_id()
    os._exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert ran.stdout.strip() == "7"
