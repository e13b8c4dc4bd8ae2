"""A process that a handler forks is no second worker: it hears and claims nothing, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PROGRAM = """
import asyncio, logging, multiprocessing, os, signal, sys, warnings
from pathlib import Path
from tidemill import Retry, Tidemill
from tidemill.shell.process import run_process

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork
logging.basicConfig(level=logging.INFO, format="%(message)s")
mill = Tidemill("sqlite:///jobs.db")
ONCE = Retry.never()
worker = None

def end_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def forked(comes_back):
    pid = os.fork()
    if pid == 0:
        Path("ran").open("a").write("child ")
        if not comes_back:
            os._exit(0)
        return -1
    Path("ran").open("a").write("parent ")
    return end_of(pid)

@mill.job("async", retry=ONCE)
async def in_loop(comes_back: bool) -> int:
    return forked(comes_back)

@mill.job("awaits", retry=ONCE)
async def awaits() -> int:
    code = forked(True)
    await asyncio.Event().wait() if code < 0 else None
    return code

@mill.job("thread", retry=ONCE)
def in_thread(comes_back: bool) -> int:
    return forked(comes_back)

@mill.job("terminate", retry=ONCE)
async def terminate() -> int:
    child = multiprocessing.get_context("fork").Process(target=signal.pause)
    child.start()
    child.terminate()
    child.join()
    return child.exitcode

@mill.job("after", retry=ONCE)
async def after() -> bool:
    ending = worker.ending
    worker.drain()
    return ending

if __name__ == "__main__":
    mill.store.migrate()
    name, *arguments = sys.argv[1:]
    handle = {"async": in_loop, "awaits": awaits, "thread": in_thread, "terminate": terminate}[name]
    refs = [handle.sync.enqueue(*[each == "yes" for each in arguments])]
    later = after.with_options(priority=-1).sync.enqueue()
    worker = mill.worker(concurrency=1)
    run_process(worker)
    print([ref.sync.result(timeout=1) for ref in (*refs, later)])
    print(Path("ran").read_text() if Path("ran").exists() else "nothing")
    mill.close()
"""


def run(folder, *arguments):
    """Run the program to its end, and see to it that nothing that it has forked outlives it."""
    (folder / "program.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "program.py", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    try:
        out, log = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode, out.splitlines(), log


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_handler_may_fork_if_the_child_ends_by_itself(tmp_path, kind):
    code, (results, ran), log = run(tmp_path, kind, "no")
    assert (code, results) == (0, "[0, False]")
    assert sorted(ran.split()) == ["child", "parent"]
    assert "came back" not in log


@pytest.mark.parametrize("arguments", [("async", "yes"), ("thread", "yes"), ("awaits",)])
def test_a_child_that_comes_back_ends_there_and_says_so(tmp_path, arguments):
    code, (results, _), log = run(tmp_path, *arguments)
    assert (code, results) == (0, "[70, False]")
    assert log.count("came back to the worker's own code") == 1
    assert log.count("Registered as worker") == 1
    assert log.count("Stopped.") == 1


def test_a_signal_to_a_forked_child_ends_the_child_and_not_the_worker(tmp_path):
    code, (results, _), log = run(tmp_path, "terminate")
    assert (code, results) == (0, f"[{-signal.SIGTERM}, False]")
    assert "Ending:" not in log
