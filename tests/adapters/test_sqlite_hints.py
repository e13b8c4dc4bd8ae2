"""Wake-up hints: in the process, across processes, and none to oneself for nothing."""

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from tidemill.adapters.hints import Hints
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.monitor import CountJobs

PROCESS = Path(__file__).with_name("sqlite_process.py")
SOON = 30


class Counting:
    def __init__(self):
        self.count, self.woken = 0, Event()

    def __call__(self):
        self.count += 1
        self.woken.set()


@pytest.fixture
def wake(store):
    counting = Counting()
    stop = store.watch(counting)
    yield counting
    stop()


def settle(store):
    """Return when the writer has looked at the file again after everything before."""
    for _ in range(2):
        store._opened.writer.submit(lambda channel: setattr(channel, "_asked_at", 0)).result()


def test_an_enqueue_wakes_its_own_process_at_once(bench, wake):
    bench.enqueue(bench.job())
    assert wake.count == 1


def test_a_claim_and_plain_successes_wake_nobody(bench, store, wake, outcome):
    worker = bench.register()
    bench.enqueue(bench.job(), bench.job())
    settle(store)
    before = wake.count
    claimed = bench.claim(worker)
    bench.report(worker, *map(outcome, claimed))
    bench.maintain()
    settle(store)
    assert wake.count == before


def test_a_commit_of_another_store_wakes_this_one(bench, path, clock, store, wake):
    store.perform_sync(CountJobs())
    other = SqliteStore(path, clock=clock)
    other.perform_sync(CountJobs())
    settle(store)
    wake.woken.clear()
    other.perform_sync(Enqueue((bench.job(),)))
    assert wake.woken.wait(SOON)
    other.close()


def test_a_commit_of_another_process_wakes_this_one(store, path, wake):
    store.perform_sync(CountJobs())
    settle(store)
    wake.woken.clear()
    subprocess.run(
        [sys.executable, str(PROCESS), "enqueue", str(path), "k"],
        input="go\n", text=True, check=True, capture_output=True,
    )  # fmt: skip
    assert wake.woken.wait(SOON)


def test_idle_polls_of_many_workers_wake_nobody(bench, path, clock, store, wake):
    worker = bench.register()
    settle(store)
    before = wake.count
    other = SqliteStore(path, clock=clock)
    other.perform_sync(Exchange(worker=worker, claim=bench.request()))
    other.perform_sync(Exchange(worker=worker, claim=bench.request(), list_running=True))
    settle(store)
    assert wake.count == before
    other.close()


def test_who_stopped_watching_is_woken_no_more(bench, store):
    counting = Counting()
    store.watch(counting)()
    bench.enqueue(bench.job())
    assert counting.count == 0


def test_a_watcher_that_fails_hurts_neither_the_write_nor_the_others(bench, store, wake, caplog):
    def broken():
        message = "the loop is gone"
        raise RuntimeError(message)

    store.watch(broken)
    job = bench.job()
    bench.enqueue(job)
    assert wake.count == 1
    assert bench.get(job.id) is not None
    assert "was not taken" in caplog.text


def test_hints_are_told_to_all_who_watch():
    hints, first, second = Hints(), Counting(), Counting()
    assert not hints.watched
    hints.add(first)
    hints.add(second)
    hints.give()
    assert (first.count, second.count, hints.watched) == (1, 1, True)
