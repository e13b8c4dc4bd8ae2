"""A supervisor starts, restarts and ends its worker processes. Theirs are stand-ins that say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.waiting import wait_until

from tidemill.shell.supervisor import FIRST_PAUSE, LONGEST_PAUSE, STEADY_SECONDS, Post, Supervisor

pytestmark = pytest.mark.skipif(os.name != "posix", reason="supervised processes need POSIX")

PARENT = """
import logging, sys
from tidemill.shell.supervisor import Supervisor
logging.basicConfig(level=logging.INFO, format="%(message)s")
sys.exit(Supervisor([sys.executable, "-c", sys.argv[1]], int(sys.argv[2])).run())
"""
# Says which orders it hears, one file for each process, and ends with the code in `code`.
STAND_IN = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: None)
orders = int(os.environ["TIDEMILL_SUPERVISOR_ORDERS"])
log = os.open(f"heard-{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.write(log, b"up ")
while True:
    order = os.read(orders, 1)
    os.write(log, {b"e": b"end ", b"h": b"hurry ", b"": b"alone "}[order])
    if order != b"e" or not os.path.exists("slow"):
        sys.exit(int(open("code").read()) if os.path.exists("code") else 0)
"""


class Started:
    """A supervisor, and what its worker processes have heard."""

    def __init__(self, folder: Path, count: int, code: str = STAND_IN):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT, textwrap.dedent(code), str(count)],
            cwd=folder, stderr=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip

    def heard(self):
        return {
            int(path.name.removeprefix("heard-")): path.read_text().split()
            for path in self.folder.glob("heard-*")
        }

    def wait_for(self, count, *words):
        """The processes that have heard just this, when there are so many of them."""
        wanted = list(words)
        wait_until(lambda: len(self.that_heard(wanted)) == count)
        return self.that_heard(wanted)

    def that_heard(self, words):
        return [pid for pid, said in self.heard().items() if said == words]

    def end(self):
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log


@pytest.fixture
def start(tmp_path):
    started = []

    def one(*arguments):
        started.append(Started(tmp_path, *arguments))
        return started[-1]

    yield one
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_every_worker_in_order(start, number):
    started = start(2)
    started.wait_for(2, "up")
    os.killpg(started.process.pid, number)  # as a terminal or a service manager does
    code, log = started.end()
    assert code == 0
    assert list(started.heard().values()) == [["up", "end"], ["up", "end"]]
    assert "All worker processes have ended." in log


def test_a_second_signal_hurries_them(start):
    (started := start(2)).folder.joinpath("slow").touch()
    started.wait_for(2, "up")
    started.process.terminate()
    started.wait_for(2, "up", "end")
    started.process.terminate()
    assert started.end()[0] == 0
    assert list(started.heard().values()) == [["up", "end", "hurry"]] * 2


def test_a_worker_that_falls_is_replaced_and_the_others_are_left_alone(start):
    started = start(2)
    fallen, other = started.wait_for(2, "up")
    os.kill(fallen, signal.SIGKILL)
    started.wait_for(3, "up")
    started.process.terminate()
    code, log = started.end()
    assert code == 0
    assert started.heard()[other] == ["up", "end"]
    assert started.heard()[fallen] == ["up"]
    assert "has ended by SIGKILL after" in log
    assert "the next one starts in 0.5 s." in log


def test_workers_notice_that_their_supervisor_was_killed(start):
    started = start(2)
    pids = started.wait_for(2, "up")
    started.process.kill()
    assert sorted(started.wait_for(2, "up", "alone")) == sorted(pids)


def test_the_exit_code_is_that_of_a_worker_which_did_not_end_in_order(start):
    (started := start(2)).folder.joinpath("code").write_text("3")
    started.wait_for(2, "up")
    started.process.terminate()
    assert started.end()[0] == 3


def test_a_command_that_cannot_work_is_not_tried_again(start):
    started = start(3, "import sys; sys.exit(2)")
    code, log = started.end()
    assert code == 2
    assert "cannot work as it was asked to" in log
    assert "the next one starts" not in log


def test_workers_that_cannot_use_the_store_from_the_start_end_the_supervisor(start):
    started = start(2, "import sys; sys.exit(3)")
    code, log = started.end()
    assert code == 3
    assert "No worker process can use the store; ending. The lines above say why." in log


def test_an_end_without_any_working_process_is_none_in_order(start):
    started = start(1, "import pathlib, sys; pathlib.Path('heard-1').touch(); sys.exit(1)")
    for line in started.process.stderr:
        if "with exit code 1 after" in line:
            break
    started.process.terminate()
    code, log = started.end()
    assert code == 1
    assert "Ending, and no worker process runs: the last one has ended with exit code 1." in log
    assert "in order" not in log


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_worker_that_falls_again_and_again_is_started_less_and_less_often():
    clock = Clock()
    supervisor = Supervisor(["unused"], 1, clock)
    (post,) = supervisor._posts
    pauses = []
    for _ in range(9):
        fall(supervisor, post, lived=1.0)
        pauses.append(post.resume_at - clock.now)
    assert pauses[:4] == [FIRST_PAUSE, 1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST_PAUSE
    fall(supervisor, post, lived=STEADY_SECONDS)
    assert post.resume_at == clock.now
    fall(supervisor, post, lived=1.0)
    assert post.resume_at == clock.now + FIRST_PAUSE


def test_a_restart_names_the_reason_of_the_exit_code(caplog):
    supervisor = Supervisor(["unused"], 2, Clock())
    fall(supervisor, supervisor._posts[0], lived=1.0, code=3)
    assert "has ended with exit code 3 (it could not use the store) after 1.0 s" in caplog.text
    assert not supervisor._asked


def test_a_store_that_fails_later_does_not_end_the_supervisor():
    supervisor = Supervisor(["unused"], 2, Clock())
    first, second = supervisor._posts
    fall(supervisor, first, lived=STEADY_SECONDS, code=3)
    fall(supervisor, second, lived=1.0, code=3)
    fall(supervisor, first, lived=1.0, code=3)
    assert not supervisor._asked


def test_a_worker_that_found_the_store_at_last_is_not_ended_for_one_that_did_not(start):
    # The first process finds no store, its successor does; the second process falls after that.
    code = STAND_IN.replace(
        "import os, signal, sys",
        """import os, pathlib, signal, sys, time
number = os.environ["TIDEMILL_SUPERVISOR_NUMBER"]
try:
    pathlib.Path("first-" + number).touch(exist_ok=False)
except FileExistsError:
    pass
else:
    while number == "2" and not list(pathlib.Path().glob("heard-*")):
        time.sleep(0.01)
    sys.exit(3)""",
    )
    started = start(2, code)
    started.wait_for(2, "up")
    started.process.terminate()
    assert started.end()[0] == 0


def fall(supervisor: Supervisor, post: Post, lived: float, code: int = 1):
    read, post.orders = os.pipe()
    os.close(read)
    post.started_at, post.starts = supervisor._clock() - lived, post.starts + 1
    supervisor._fallen(post, code)


def test_a_worker_that_cannot_be_started_is_tried_again_later(caplog):
    supervisor = Supervisor(["/nonexistent/python"], 1, Clock())
    supervisor._start_due()
    (post,) = supervisor._posts
    assert (post.process, post.resume_at) == (None, FIRST_PAUSE)
    assert "could not be started" in caplog.text
