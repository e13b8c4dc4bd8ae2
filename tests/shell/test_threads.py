"""Daemon threads: few, reused, and never in the way of the interpreter's end."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref

import pytest

from tidemill.shell.threads import DaemonThreads

WITHIN = 30.0


@pytest.fixture
def pool():
    pool = DaemonThreads(3, "tidemill-pool")
    yield pool
    pool.close()


def names(pool_name="tidemill-pool"):
    return {t.name for t in threading.enumerate() if t.name.startswith(pool_name)}


def test_no_thread_is_started_before_it_is_needed(pool):
    assert names() == set()


def test_there_are_never_more_threads_than_its_size(pool):
    gate, ended = threading.Event(), threading.Semaphore(0)
    running = threading.Semaphore(0)

    def call():
        running.release()
        gate.wait(WITHIN)
        ended.release()

    for _ in range(10):
        pool.submit(call)
    for _ in range(3):
        assert running.acquire(timeout=WITHIN)
    assert len(names()) == 3
    assert not running.acquire(blocking=False)
    gate.set()
    for _ in range(10):
        assert ended.acquire(timeout=WITHIN)
    assert len(names()) == 3


def test_an_idle_thread_is_used_again(pool, wait_for_idle):
    used = set()
    for _ in range(20):
        done = threading.Event()
        pool.submit(lambda done=done: (used.add(threading.get_ident()), done.set()))
        assert done.wait(WITHIN)
        wait_for_idle(pool)
    assert len(used) == 1


@pytest.fixture
def wait_for_idle():
    """A call is over a moment before its thread is idle: take the lock until it is."""

    def wait(pool):
        while True:
            with pool._lock:
                if pool._idle == pool._started:
                    return

    return wait


def test_what_waited_for_a_busy_pool_leaves_no_thread_counted_twice(pool, wait_for_idle):
    gate, ended = threading.Event(), threading.Semaphore(0)
    for _ in range(9):
        pool.submit(lambda: (gate.wait(WITHIN), ended.release()))
    gate.set()
    for _ in range(9):
        assert ended.acquire(timeout=WITHIN)
    wait_for_idle(pool)
    assert (pool._idle, pool._started, pool._waiting) == (3, 3, 0)


def test_closing_lets_idle_threads_end_and_busy_ones_finish(pool):
    gate, ended = threading.Event(), threading.Event()
    started = threading.Event()
    pool.submit(lambda: (started.set(), gate.wait(WITHIN), ended.set()))
    assert started.wait(WITHIN)
    threads = [t for t in threading.enumerate() if t.name.startswith("tidemill-pool")]
    pool.close()
    gate.set()
    assert ended.wait(WITHIN)
    for thread in threads:
        thread.join(WITHIN)
        assert not thread.is_alive()


def test_an_idle_thread_keeps_nothing_of_its_last_call(pool, wait_for_idle):
    class Baggage:
        pass

    baggage = Baggage()
    gone = weakref.ref(baggage)
    pool.submit(lambda baggage=baggage: None)
    del baggage
    wait_for_idle(pool)
    assert gone() is None


def test_a_thread_that_the_system_refuses_is_not_counted(pool, monkeypatch):
    def refuse(_thread):
        message = "can't start new thread"
        raise RuntimeError(message)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            pool.submit(lambda: None)
    assert pool._started == 0
    ran = threading.Event()
    pool.submit(ran.set)
    assert ran.wait(WITHIN)


ENDLESS = """
import threading
from tidemill.shell.threads import DaemonThreads
pool, started = DaemonThreads(1, "endless"), threading.Event()
pool.submit(lambda: (started.set(), threading.Event().wait()))
started.wait()
print("the end")
"""


def test_a_call_that_never_ends_does_not_keep_the_interpreter():
    ended = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "the end\n", "")
