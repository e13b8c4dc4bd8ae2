"""An app that was used before a fork works in the child, and leaves the parent's connections be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PRELOADED = """
import asyncio, gc, os, signal, sys, threading
from tidemill import Tidemill

mill = Tidemill(sys.argv[1])

@mill.job("t.job")
def job(number: int) -> None: ...

mill.store.migrate()
stop = mill.store.watch(lambda: None)

async def both(number):
    await job.enqueue(number)
    return sum(each.count for each in await mill.jobs.counts())

def in_child(number):
    signal.alarm(60)
    job.sync.enqueue(number)
    asyncio.run(both(number + 1))
    mill.close()
    gc.collect()

async def preloaded():
    await both(1)
    await asyncio.to_thread(job.sync.enqueue, 2)
    with mill.store.dedicated() as channel:
        held, let_go = threading.Event(), threading.Event()
        threading.Thread(target=hold, args=(held, let_go)).start()
        held.wait()
        for number in (10, 20, 30):
            child = os.fork()
            if child == 0:
                return number
            status = await asyncio.to_thread(os.waitpid, child, 0)
            assert status[1] == 0, status
        let_go.set()
        return await both(3)

def hold(held, let_go):
    with mill._lock:
        held.set()
        let_go.wait()

parent = os.getpid()
loop = asyncio.new_event_loop()
answer = loop.run_until_complete(preloaded())
if os.getpid() != parent:
    in_child(answer)
    os._exit(0)
stop()
mill.close()
loop.close()
print(answer)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_server_that_forks_with_the_app_loaded_works_in_parent_and_children(
    kind, tmp_path, request
):
    url = f"sqlite:///{tmp_path}/jobs.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELOADED, url],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr, ended.returncode) == ("9\n", "", 0)
