"""Channels: the same store from coroutines, from threads and from a heart (clauses C9, M1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import timedelta
from threading import Event, Thread
from typing import Final, cast

import pytest

from tidemill.bridges.join import Joined, join
from tidemill.conformance.endstates import cancelled_job
from tidemill.conformance.scenes import (
    LEASE,
    SECOND,
    cancel,
    enqueue_one,
    new_job,
    pause,
    register,
    report,
    requeue,
    resume,
    run_now,
    start,
    state_of,
)
from tidemill.errors import InvalidValue, TransactionRefused
from tidemill.store.contract import Store
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState

HINT_SECONDS: Final = 10
"""How long a hint of the store's own process may take on a machine that is busy."""


@pytest.mark.anyio
async def test_a_coroutine_and_a_thread_are_answered_by_the_same_store(store: Store) -> None:
    """M1."""
    job = new_job()
    (enqueued,) = await store.perform(Enqueue((job,)))
    assert enqueued.state is JobState.READY
    assert await store.perform(GetJob(job.id)) == store.perform_sync(GetJob(job.id))


@pytest.mark.anyio
async def test_a_refusal_reaches_a_coroutine_as_its_own_error(store: Store) -> None:
    """F5, M1."""
    with pytest.raises(InvalidValue):
        await store.perform(Enqueue((new_job(queue=""),)))


def test_a_heart_beats_through_a_channel_of_its_own(store: Store) -> None:
    """C9."""
    worker = register(store)
    with store.dedicated() as channel:
        assert channel.perform(Beat(worker=worker, lease=LEASE)).live


def test_a_channel_of_its_own_may_be_opened_in_another_thread(store: Store) -> None:
    """C9."""
    worker = register(store)
    live: list[bool] = []

    def beat() -> None:
        with store.dedicated() as channel:
            live.extend(channel.perform(Beat(worker=worker, lease=LEASE)).live for _ in range(2))

    heart = Thread(target=beat)
    heart.start()
    heart.join()
    assert live == [True, True]


def _enqueued(store: Store) -> Callable[[], object]:
    return lambda: enqueue_one(store)


def _scheduled(store: Store) -> Callable[[], object]:
    return lambda: enqueue_one(store, delay=SECOND)


def _released(store: Store) -> Callable[[], object]:
    job = start(store, register(store))
    return lambda: report(store, job, Verdict.RELEASED)


def _run_now(store: Store) -> Callable[[], object]:
    job_id = enqueue_one(store, delay=timedelta(days=1))
    return lambda: run_now(store, job_id)


def _requeued(store: Store) -> Callable[[], object]:
    job_id = cancelled_job(store)
    return lambda: requeue(store, job_id)


def _asked_to_cancel(store: Store) -> Callable[[], object]:
    job = start(store, register(store))
    return lambda: cancel(store, job.id)


def _resumed(store: Store) -> Callable[[], object]:
    enqueue_one(store)
    pause(store)
    return lambda: resume(store)


NEWS: dict[str, Callable[[Store], Callable[[], object]]] = {
    "enqueue": _enqueued,
    "enqueue for later": _scheduled,
    "release": _released,
    "run now": _run_now,
    "requeue": _requeued,
    "a cancel request": _asked_to_cancel,
    "resume": _resumed,
}


class Watcher:
    """Counts the hints it is given."""

    def __init__(self, store: Store) -> None:
        """Watch from now on."""
        self.hints = 0
        self.woken = Event()
        self._given = store.capabilities.hints
        self.stop = store.watch(self._wake)

    def _wake(self) -> None:
        self.hints += 1
        self.woken.set()

    def wait(self) -> None:
        """Return when a hint has come, if the store gives any."""
        assert not self._given or self.woken.wait(HINT_SECONDS)


def next_hint(store: Store) -> Watcher:
    """Do what gives a hint, and return when it has come: every one before it has come too."""
    fence = Watcher(store)
    enqueue_one(store)
    fence.wait()
    fence.stop()
    return fence


@pytest.mark.parametrize("way", NEWS)
def test_a_store_with_hints_wakes_its_watchers_when_there_is_news(store: Store, way: str) -> None:
    """M1, G2: a hint lowers latency, and a store without the capability never gives one."""
    act = NEWS[way](store)
    watcher = Watcher(store)
    act()
    watcher.wait()
    watcher.stop()
    assert store.capabilities.hints or not watcher.hints


def test_who_stopped_watching_is_given_no_hint(store: Store) -> None:
    """M1."""
    watcher = Watcher(store)
    watcher.stop()
    next_hint(store)
    assert watcher.hints == 0


def test_a_refused_request_gives_no_hint(store: Store) -> None:
    """M1, F2: whoever watched it has heard no more than whoever began to watch after it."""
    watcher = Watcher(store)
    with pytest.raises(InvalidValue):
        store.perform_sync(Enqueue((new_job(), new_job(queue=""))))
    fence = next_hint(store)
    watcher.stop()
    assert watcher.hints == fence.hints


def test_a_watcher_that_fails_does_not_undo_or_hide_what_was_committed(store: Store) -> None:
    """M1."""

    def fail() -> None:
        message = "the loop is closed"
        raise RuntimeError(message)

    stop = store.watch(fail)
    job_id = enqueue_one(store)
    stop()
    assert state_of(store, job_id) is JobState.READY


def test_a_transaction_elsewhere_is_refused_by_every_store_that_outlives_its_process(
    store: Store,
) -> None:
    """F4, M1: one that does not stands for any database in a test, and performs at once."""
    refused = store.capabilities.persistent
    with closing(sqlite3.connect(":memory:")) as tx:
        tx.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransactionRefused) if refused else nullcontext():
            cast("Joined", join(store, tx)).perform(Enqueue((new_job(),)))
        assert tx.total_changes == 0
    assert bool(store.perform_sync(ListJobs()).jobs) is not refused


def test_migrating_again_applies_nothing(store: Store) -> None:
    """M2."""
    job_id = enqueue_one(store)
    assert store.migrate() == ()
    assert store.plan() == ()
    assert state_of(store, job_id) is JobState.READY


def test_a_store_may_be_closed_twice(store: Store) -> None:
    """M1."""
    store.close()
    store.close()


def test_a_store_says_what_it_adds_to_the_contract(store: Store) -> None:
    """M1."""
    assert store.capabilities.name
    assert store.bounds.attempts_kept >= 1
