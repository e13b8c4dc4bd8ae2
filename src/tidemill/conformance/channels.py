"""Channels: the same store from coroutines, from threads and from a heart (clauses C9, M1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Final

import pytest

from tidemill.conformance.endstates import cancelled_job
from tidemill.conformance.scenes import (
    LEASE,
    SECOND,
    enqueue_one,
    new_job,
    register,
    report,
    requeue,
    run_now,
    start,
    state_of,
)
from tidemill.errors import InvalidValue
from tidemill.store.contract import Store
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.monitor import GetJob
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


READYING: dict[str, Callable[[Store], Callable[[], object]]] = {
    "enqueue": _enqueued,
    "enqueue for later": _scheduled,
    "release": _released,
    "run now": _run_now,
    "requeue": _requeued,
}


@pytest.mark.parametrize("way", READYING)
def test_a_store_with_hints_wakes_its_watchers_when_there_is_work(store: Store, way: str) -> None:
    """M1: a hint lowers latency, and a store without the capability never gives one."""
    act = READYING[way](store)
    woken = Event()
    stop = store.watch(woken.set)
    act()
    if store.capabilities.hints:
        assert woken.wait(HINT_SECONDS)
    stop()
    woken.clear()
    enqueue_one(store)
    assert not woken.is_set()


def test_a_refused_request_gives_no_hint(store: Store) -> None:
    """M1, F2."""
    woken = Event()
    stop = store.watch(woken.set)
    with pytest.raises(InvalidValue):
        store.perform_sync(Enqueue((new_job(), new_job(queue=""))))
    stop()
    assert not woken.is_set()


def test_a_watcher_that_fails_does_not_undo_or_hide_what_was_committed(store: Store) -> None:
    """M1."""

    def fail() -> None:
        message = "the loop is closed"
        raise RuntimeError(message)

    stop = store.watch(fail)
    job_id = enqueue_one(store)
    stop()
    assert state_of(store, job_id) is JobState.READY


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
