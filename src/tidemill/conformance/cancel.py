"""Cancellation: at once before a start, by request while running (clauses G1, G2, G4)."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemill.conformance.endstates import ENDED
from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    MILLER,
    SECOND,
    beat,
    cancel,
    claim,
    claim_one,
    details,
    enqueue,
    enqueue_one,
    exchange,
    fresh_job_id,
    lapse,
    new_job,
    outcome,
    register,
    report,
    request,
    requeue,
    start,
)
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values import causes
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState
from tidemill.values.workers import RunningPair

OTHER_ENDS = [Verdict.FAILED, Verdict.DISCARDED, Verdict.CANCELLED, Verdict.RELEASED]


@pytest.mark.parametrize("delay", [None, SECOND])
def test_a_job_that_was_not_started_is_cancelled_at_once_and_frees_its_key(
    store: Store, clock: VirtualClock, delay: object
) -> None:
    """G1, B2, F3."""
    job_id = enqueue_one(store, delay=delay, idempotency_key="k")
    assert cancel(store, job_id) == (
        ActionResult(job_id=job_id, effect=Effect.DONE, state=JobState.CANCELLED),
    )
    record = details(store, job_id).record
    assert (record.state, record.cause) == (JobState.CANCELLED, causes.operator(MILLER))
    assert (record.finished_at, record.attempt) == (clock(), 0)
    clock.advance(SECOND)
    assert claim(store, register(store)) == ()
    assert enqueue_one(store, idempotency_key="k") != job_id


def test_a_job_that_waits_out_a_backoff_is_cancelled_at_once(store: Store) -> None:
    """G1."""
    job = start(store, register(store))
    report(store, job, Verdict.FAILED, error=BROKEN)
    (result,) = cancel(store, job.id)
    assert (result.effect, result.state) == (Effect.DONE, JobState.CANCELLED)


def test_a_running_job_is_asked_to_cancel_and_its_worker_hears_of_it(store: Store) -> None:
    """G2."""
    job = start(store, register(store))
    assert cancel(store, job.id, actor="ada") == (
        ActionResult(job_id=job.id, effect=Effect.REQUESTED, state=JobState.RUNNING),
    )
    record = details(store, job.id).record
    assert (record.state, record.cancel_requested) == (JobState.RUNNING, "ada")
    assert beat(store, job.worker).running == (
        RunningPair(job.id, job.attempt, cancel_requested="ada"),
    )


def test_every_exchange_tells_its_worker_which_attempts_are_to_be_cancelled(
    store: Store, clock: VirtualClock
) -> None:
    """G2: one that claims, one that reports, one with nothing to do, and one that came too late."""
    worker = register(store)
    kept, asked = start(store, worker), start(store, worker)
    other = start(store, register(store))
    assert exchange(store, worker).cancels == ()
    cancel(store, asked.id, other.id, actor="ada")
    pair = RunningPair(asked.id, asked.attempt, cancel_requested="ada")
    assert exchange(store, worker).cancels == (pair,)
    assert exchange(store, worker, claim=request()).cancels == (pair,)
    waiting = enqueue_one(store)
    answered = exchange(store, worker, outcome(kept, Verdict.SUCCEEDED), claim=request())
    assert [job.id for job in answered.claimed] == [waiting]
    assert answered.cancels == (pair,)
    clock.advance(LEASE)
    assert exchange(store, worker).cancels == (pair,)


def test_an_attempt_that_ended_is_not_to_be_cancelled_any_more(store: Store) -> None:
    """G2."""
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    cancel(store, job.id)
    assert exchange(store, worker, outcome(job, Verdict.CANCELLED)).cancels == ()
    requeue(store, job.id)
    claim_one(store, worker)
    assert exchange(store, worker).cancels == ()


def test_thousands_of_jobs_can_be_cancelled_at_once(store: Store) -> None:
    """G1, G4, L1: each is answered in its place."""
    worker = register(store)
    waiting = [new_job() for _ in range(2_100)]
    enqueue(store, *waiting)
    running = [job.id for job in claim(store, worker, 40)]
    unknown = [fresh_job_id() for _ in range(20)]
    asked = [*unknown, *(job.id for job in waiting)]
    results = cancel(store, *asked)
    assert [result.job_id for result in results] == asked
    effects = Counter(result.effect for result in results)
    assert effects == {Effect.NOT_FOUND: 20, Effect.REQUESTED: 40, Effect.DONE: 2_060}
    assert {pair.job_id for pair in exchange(store, worker).cancels} == set(running)


def test_asking_twice_is_fine_and_the_first_actor_stays(store: Store) -> None:
    """G2."""
    job = start(store, register(store))
    cancel(store, job.id, actor="ada")
    (result,) = cancel(store, job.id, actor="bob")
    assert result.effect is Effect.REQUESTED
    assert details(store, job.id).record.cancel_requested == "ada"


def test_a_handler_that_finishes_first_still_succeeds(store: Store) -> None:
    """G2."""
    job = start(store, register(store))
    cancel(store, job.id)
    assert report(store, job, Verdict.SUCCEEDED, output=b"1").state is JobState.SUCCEEDED
    ended = details(store, job.id)
    assert (ended.output, ended.record.cause, ended.record.cancel_requested) == (b"1", None, None)


@pytest.mark.parametrize("verdict", [*OTHER_ENDS, Verdict.SNOOZED, Verdict.UNROUTABLE])
def test_any_other_end_of_an_attempt_asked_to_cancel_is_cancelled(
    store: Store, clock: VirtualClock, verdict: Verdict
) -> None:
    """G2, B2."""
    job = start(store, register(store), retry=AT_ONCE)
    cancel(store, job.id)
    assert report(store, job, verdict, error=BROKEN).state is JobState.CANCELLED
    ended = details(store, job.id)
    assert ended.record.cause == causes.operator(MILLER)
    assert (ended.record.cancel_requested, ended.record.finished_at) == (None, clock())
    assert [record.verdict for record in ended.attempts] == [verdict]


def test_a_lapse_of_an_attempt_asked_to_cancel_is_cancelled(
    store: Store, clock: VirtualClock
) -> None:
    """G2."""
    job = start(store, register(store))
    cancel(store, job.id)
    (lapsed,) = lapse(store, clock).lapsed
    assert (lapsed.state, lapsed.cause) == (JobState.CANCELLED, causes.operator(MILLER))
    assert details(store, job.id).record.lapses == 1


def test_a_cancel_request_never_leaks_into_the_next_attempt(store: Store) -> None:
    """G2."""
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    cancel(store, job.id)
    report(store, job, Verdict.FAILED, error=BROKEN)
    requeue(store, job.id)
    again = claim_one(store, worker)
    assert details(store, job.id).record.cancel_requested is None
    assert report(store, again, Verdict.FAILED, error=BROKEN).state is JobState.READY


def test_a_stop_that_nobody_asked_for_is_a_failure(store: Store) -> None:
    """G2, G3: only a request makes a cancelled attempt a cancelled job."""
    job = start(store, register(store))
    assert report(store, job, Verdict.CANCELLED).state is JobState.SCHEDULED
    assert details(store, job.id).record.failures == 1


@pytest.mark.parametrize("state", ENDED)
def test_cancelling_a_terminal_job_changes_nothing_and_says_so(
    store: Store, clock: VirtualClock, state: JobState
) -> None:
    """G4."""
    job_id = ENDED[state](store)
    before = details(store, job_id)
    clock.advance(LEASE / 2)
    assert cancel(store, job_id) == (
        ActionResult(job_id=job_id, effect=Effect.UNCHANGED, state=state),
    )
    assert details(store, job_id) == before


def test_cancelling_an_unknown_job_says_so_and_goes_on_with_the_others(store: Store) -> None:
    """G4, L1."""
    unknown = fresh_job_id()
    waiting = enqueue_one(store)
    missing, done = cancel(store, unknown, waiting)
    assert missing == ActionResult(job_id=unknown, effect=Effect.NOT_FOUND)
    assert (done.job_id, done.effect) == (waiting, Effect.DONE)


def test_the_same_job_twice_in_one_cancel_is_cancelled_once(store: Store) -> None:
    """G4."""
    job_id = enqueue_one(store)
    effects = [result.effect for result in cancel(store, job_id, job_id)]
    assert effects == [Effect.DONE, Effect.UNCHANGED]
