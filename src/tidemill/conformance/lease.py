"""Leases: registering, beating, the sweep and reconciliation, on the store's side (C4–C8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    GRIND,
    LEASE,
    MICROSECOND,
    SECOND,
    beat,
    cancel,
    claim,
    details,
    enqueue_one,
    exchange,
    fresh_job_id,
    lapse,
    maintain,
    outcome,
    register,
    report,
    request,
    start,
    state_of,
    worker_info,
)
from tidemill.core.lease import LAPSED_WORKERS_AT_ONCE
from tidemill.errors import WorkerIdUsed
from tidemill.store.contract import Store
from tidemill.store.lease import Deregister, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import ListWorkers
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply, Lapsed, Maintained, Registered
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.states import JobState
from tidemill.values.workers import RunningPair


def test_a_beat_renews_the_lease_from_the_stores_time(store: Store, clock: VirtualClock) -> None:
    """C4, A1."""
    worker = register(store)
    for _ in range(3):
        clock.advance(LEASE - MICROSECOND)
        assert beat(store, worker) == BeatReply(worker, clock(), live=True)
    clock.advance(LEASE - MICROSECOND)
    assert exchange(store, worker).live


def test_one_beat_keeps_every_attempt_of_its_worker(store: Store, clock: VirtualClock) -> None:
    """C4."""
    worker = register(store)
    for _ in range(5):
        enqueue_one(store)
    claim(store, worker, 5)
    for _ in range(3):
        clock.advance(LEASE / 2)
        beat(store, worker)
        assert maintain(store).lapsed == ()


def test_a_lease_is_dead_at_its_expiry_instant_and_no_beat_wakes_it(
    store: Store, clock: VirtualClock
) -> None:
    """C5."""
    worker = register(store)
    clock.advance(LEASE)
    assert not beat(store, worker).live
    assert not beat(store, worker).live
    assert not exchange(store, worker).live


def test_a_lease_that_lapsed_stays_dead_when_the_clock_steps_back(
    store: Store, clock: VirtualClock
) -> None:
    """C5, A3."""
    worker = register(store)
    clock.advance(LEASE)
    assert not beat(store, worker).live
    clock.advance(-LEASE)
    assert not beat(store, worker).live
    (row,) = store.perform_sync(ListWorkers())
    assert (row.live, row.lapsed_at is not None) == (False, True)


def test_a_beat_of_an_unknown_worker_is_not_live(store: Store, clock: VirtualClock) -> None:
    """C5."""
    stranger = WorkerId(fresh_job_id())
    assert beat(store, stranger) == BeatReply(stranger, clock(), live=False)
    assert store.perform_sync(ListWorkers()) == ()


def test_the_same_registration_again_is_answered_and_renews_the_lease(
    store: Store, clock: VirtualClock
) -> None:
    """A3, M3: the answer to the first may have been lost."""
    info = worker_info()
    store.perform_sync(Register(info=info, lease=LEASE))
    started = clock()
    clock.advance(LEASE / 2)
    again = store.perform_sync(Register(info=info, lease=LEASE))
    assert again == Registered(info.id, clock())
    (row,) = store.perform_sync(ListWorkers())
    assert (row.started_at, row.lease_expires_at) == (started, clock() + LEASE)


def test_a_worker_id_whose_lease_lapsed_is_never_registered_again(
    store: Store, clock: VirtualClock
) -> None:
    """A3."""
    info = worker_info()
    store.perform_sync(Register(info=info, lease=LEASE))
    clock.advance(LEASE)
    with pytest.raises(WorkerIdUsed):
        store.perform_sync(Register(info=info, lease=LEASE))
    assert not beat(store, info.id).live


def test_a_worker_id_that_was_deregistered_is_never_registered_again(store: Store) -> None:
    """A3."""
    info = worker_info()
    store.perform_sync(Register(info=info, lease=LEASE))
    store.perform_sync(Deregister(info.id))
    with pytest.raises(WorkerIdUsed):
        store.perform_sync(Register(info=info, lease=LEASE))
    assert not exchange(store, info.id).live


def test_a_worker_id_that_another_worker_has_is_refused(store: Store) -> None:
    """A3."""
    info = worker_info()
    store.perform_sync(Register(info=info, lease=LEASE))
    with pytest.raises(WorkerIdUsed):
        store.perform_sync(Register(info=replace(info, pid=2), lease=LEASE))
    assert beat(store, info.id).live


def test_deregistering_ends_the_lease_at_once_and_may_be_repeated(store: Store) -> None:
    """A3, M3."""
    worker = register(store)
    for _ in range(2):
        store.perform_sync(Deregister(worker))
    store.perform_sync(Deregister(WorkerId(fresh_job_id())))
    assert not beat(store, worker).live
    assert store.perform_sync(ListWorkers()) == ()


def test_the_sweep_ends_the_attempts_of_a_lapsed_worker(store: Store, clock: VirtualClock) -> None:
    """C6, E2."""
    worker = register(store)
    first, second = (start(store, worker) for _ in range(2))
    clock.advance(LEASE - MICROSECOND)
    assert maintain(store) == Maintained()
    clock.advance(MICROSECOND)
    assert maintain(store).lapsed == tuple(
        Lapsed(job_id=job.id, attempt=job.attempt, worker=worker, state=JobState.SCHEDULED)
        for job in (first, second)
    )
    for job in (first, second):
        (record,) = details(store, job.id).attempts
        assert (record.verdict, record.worker, record.attempt) == (Verdict.LAPSED, worker, 1)
        assert (record.started_at, record.ended_at) == (job.started_at, clock())
        assert record.error is None


def test_the_sweep_may_run_twice_and_finds_nothing_the_second_time(
    store: Store, clock: VirtualClock
) -> None:
    """C6."""
    job = start(store, register(store))
    lapse(store, clock)
    before = details(store, job.id)
    assert maintain(store) == Maintained()
    assert details(store, job.id) == before


def test_the_sweep_leaves_the_attempts_of_live_workers_alone(
    store: Store, clock: VirtualClock
) -> None:
    """C6."""
    lost = start(store, register(store))
    clock.advance(LEASE / 2)
    kept = start(store, register(store))
    clock.advance(LEASE / 2)
    assert [lapsed.job_id for lapsed in maintain(store).lapsed] == [lost.id]
    assert state_of(store, kept.id) is JobState.RUNNING


def test_the_sweep_never_ends_a_healthy_long_attempt(store: Store, clock: VirtualClock) -> None:
    """C6: the lease is asked, not the time that passed."""
    job = start(store, register(store))
    for _ in range(500):
        clock.advance(LEASE / 2)
        beat(store, job.worker)
    assert maintain(store).lapsed == ()
    assert report(store, job, Verdict.SUCCEEDED).answer is Answer.APPLIED


def test_the_sweep_ends_the_attempts_of_a_worker_that_was_deregistered(store: Store) -> None:
    """C6: running rows whose worker is not there."""
    job = start(store, register(store))
    store.perform_sync(Deregister(job.worker))
    assert [lapsed.job_id for lapsed in maintain(store).lapsed] == [job.id]


def test_one_sweep_ends_the_attempts_of_any_number_of_lapsed_workers(
    store: Store, clock: VirtualClock
) -> None:
    """C6: however many workers a round marks, the jobs of none wait for their mark."""
    jobs = [start(store, register(store)) for _ in range(130)]
    clock.advance(LEASE)
    swept = maintain(store)
    assert [lapsed.job_id for lapsed in swept.lapsed] == [job.id for job in jobs]
    marked = [row for row in store.perform_sync(ListWorkers()) if row.lapsed_at is not None]
    assert len(marked) == LAPSED_WORKERS_AT_ONCE
    assert [row.id for row in marked] == sorted(job.worker for job in jobs)[: len(marked)]
    assert maintain(store) == Maintained()
    assert all(row.lapsed_at for row in store.perform_sync(ListWorkers()))


def test_the_sweep_looks_at_rows_again_after_it_marked_their_worker(
    store: Store, clock: VirtualClock
) -> None:
    """C6: a bounded round leaves rows behind, and the next one finds them."""
    worker = register(store)
    jobs = [start(store, worker, retry=AT_ONCE) for _ in range(5)]
    clock.advance(LEASE)
    rounds = [maintain(store, limit=2) for _ in range(3)]
    assert [job for done in rounds for job in done.lapsed] == [
        Lapsed(job_id=job.id, attempt=job.attempt, worker=worker, state=JobState.READY)
        for job in jobs
    ]
    assert [done.more for done in rounds] == [True, True, False]


def test_a_beat_lists_what_runs_under_its_worker_with_cancel_requests(store: Store) -> None:
    """C8, G2."""
    worker, other = register(store), register(store)
    kept, asked, ended = (start(store, worker) for _ in range(3))
    start(store, other)
    report(store, ended, Verdict.SUCCEEDED)
    cancel(store, asked.id, actor="ada")
    assert set(beat(store, worker).running) == {
        RunningPair(kept.id, kept.attempt),
        RunningPair(asked.id, asked.attempt, cancel_requested="ada"),
    }


def test_an_exchange_lists_what_runs_when_asked_without_its_own_claim(store: Store) -> None:
    """C8."""
    worker = register(store)
    kept = start(store, worker)
    ended = start(store, worker)
    waiting = enqueue_one(store)
    answered = exchange(
        store, worker, outcome(ended, Verdict.SUCCEEDED), claim=request(), list_running=True
    )
    assert answered.running == (RunningPair(kept.id, kept.attempt),)
    assert [job.id for job in answered.claimed] == [waiting]
    assert exchange(store, worker).running is None


def test_a_claim_whose_answer_was_lost_shows_in_the_next_list_and_can_be_released(
    store: Store,
) -> None:
    """C8: it costs no budget."""
    worker = register(store)
    lost = start(store, worker)
    (pair,) = beat(store, worker).running
    assert pair.pair == (lost.id, lost.attempt)
    assert report(store, lost, Verdict.RELEASED).state is JobState.READY
    record = details(store, lost.id).record
    assert (record.failures, record.lapses) == (0, 0)


def test_a_lease_may_be_as_long_as_each_beat_says(store: Store, clock: VirtualClock) -> None:
    """C4."""
    worker = register(store, lease=SECOND, wire_names=frozenset({GRIND}))
    beat(store, worker, lease=10 * SECOND)
    clock.advance(9 * SECOND)
    assert beat(store, worker, lease=SECOND).live
    clock.advance(SECOND)
    assert not beat(store, worker).live
