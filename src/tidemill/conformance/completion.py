"""Completion in the handler's transaction, and the settling of what follows (clause D8)."""

from __future__ import annotations

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    MICROSECOND,
    beat,
    cancel,
    claim_one,
    complete,
    details,
    enqueue,
    exchange,
    fresh_job_id,
    lapse,
    maintain,
    new_job,
    outcome,
    register,
    report,
    start,
    state_of,
)
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.ids import Attempt, WorkerId
from tidemill.values.jobs import Holder
from tidemill.values.outcomes import Answer, Reported, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

FINE = Tag("fine", "yes")
ENDS = [verdict for verdict in Verdict if verdict is not Verdict.LAPSED]


def test_a_completion_is_a_success_by_its_attempt(store: Store, clock: VirtualClock) -> None:
    """D8."""
    job = start(store, register(store), idempotency_key="k")
    clock.advance(LEASE / 2)
    said = complete(store, job, output=b"7")
    assert said == Reported(job.id, job.attempt, Answer.APPLIED, JobState.SUCCEEDED)
    done = details(store, job.id)
    assert (done.record.state, done.output) == (JobState.SUCCEEDED, b"7")
    assert (done.record.worker, done.record.attempt) == (job.worker, job.attempt)
    assert (done.record.finished_at, done.record.cause) == (clock(), None)
    assert done.record.unsettled


def test_a_completion_frees_the_idempotency_key(store: Store) -> None:
    """D8, F3."""
    job = start(store, register(store), idempotency_key="k")
    complete(store, job)
    (again,) = enqueue(store, new_job(idempotency_key="k"))
    assert not again.deduplicated


def test_a_completion_is_listed_as_running_no_more(store: Store) -> None:
    """C8, D8."""
    job = start(store, register(store))
    complete(store, job)
    assert beat(store, job.worker).running == ()


@pytest.mark.parametrize("wrong", ["worker", "attempt"])
def test_a_completion_by_another_worker_or_attempt_is_stale_and_writes_nothing(
    store: Store, wrong: str
) -> None:
    """D1, D2, D8."""
    job = start(store, register(store))
    before = details(store, job.id)
    other = {"worker": register(store)} if wrong == "worker" else {"attempt": Attempt(2)}
    said = complete(store, job, output=b"7", **other)
    assert said.answer is Answer.STALE
    assert said.holder == Holder(job.worker, job.attempt, JobState.RUNNING)
    assert details(store, job.id) == before


def test_a_completion_of_an_attempt_that_lapsed_is_stale(store: Store, clock: VirtualClock) -> None:
    """D1, D2, D8."""
    job = start(store, register(store), retry=AT_ONCE)
    lapse(store, clock)
    assert complete(store, job).answer is Answer.STALE
    again = claim_one(store, register(store))
    assert complete(store, job).answer is Answer.STALE
    assert complete(store, again).answer is Answer.APPLIED


def test_a_second_completion_by_the_same_attempt_is_told_so_and_writes_nothing(
    store: Store,
) -> None:
    """D5, D8."""
    job = start(store, register(store))
    complete(store, job, output=b"7", tags=frozenset({FINE}))
    before = details(store, job.id)
    assert complete(store, job, output=b"8").answer is Answer.ALREADY_APPLIED
    assert details(store, job.id) == before


def test_a_completion_of_an_unknown_job_is_gone(store: Store) -> None:
    """D5, D8."""
    told = Complete(job_id=fresh_job_id(), attempt=Attempt(1), worker=register(store))
    assert store.perform_sync(told).answer is Answer.GONE


def test_a_handler_that_completes_before_it_hears_of_a_cancel_has_succeeded(store: Store) -> None:
    """D8, G2."""
    job = start(store, register(store))
    cancel(store, job.id)
    assert complete(store, job).answer is Answer.APPLIED
    assert details(store, job.id).record.cancel_requested is None


def test_what_follows_a_completion_is_settled_by_the_report_of_its_attempt(store: Store) -> None:
    """D8."""
    job = start(store, register(store), tags=frozenset({Tag("asked")}))
    complete(store, job, output=b"7", tags=frozenset({FINE}))
    assert details(store, job.id).tags == {Tag("asked")}
    said = report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    assert (said.answer, said.state) == (Answer.ALREADY_APPLIED, JobState.SUCCEEDED)
    done = details(store, job.id)
    assert (done.record.unsettled, done.output) == (False, b"7")
    assert done.tags == {Tag("asked"), FINE}
    assert done.attempts == ()


@pytest.mark.parametrize("verdict", ENDS)
def test_however_a_handler_ended_its_committed_completion_stands(
    store: Store, verdict: Verdict
) -> None:
    """D8."""
    job = start(store, register(store))
    complete(store, job)
    said = report(store, job, verdict, error=BROKEN, in_transaction=True)
    assert said.answer is Answer.ALREADY_APPLIED
    assert state_of(store, job.id) is JobState.SUCCEEDED


def test_a_report_from_after_the_lease_finds_the_completion_too(
    store: Store, clock: VirtualClock
) -> None:
    """D5, D8."""
    job = start(store, register(store))
    complete(store, job)
    clock.advance(LEASE)
    said = report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    assert said.answer is Answer.ALREADY_APPLIED
    assert not details(store, job.id).record.unsettled


def test_a_completion_that_was_rolled_back_leaves_the_verdict_to_the_report(store: Store) -> None:
    """D8."""
    job = start(store, register(store))
    said = report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    assert (said.answer, said.state) == (Answer.APPLIED, JobState.SCHEDULED)
    (attempt,) = details(store, job.id).attempts
    assert attempt.error is not None
    assert attempt.error.message == BROKEN.message


def test_a_report_of_a_completion_that_never_was_is_as_stale_as_any(
    store: Store, clock: VirtualClock
) -> None:
    """D1, D2, D8."""
    job = start(store, register(store))
    lapse(store, clock)
    said = report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    assert said.answer is Answer.STALE


def test_one_exchange_settles_and_applies_side_by_side(store: Store) -> None:
    """D4, D8."""
    worker = register(store)
    first, second, third = (start(store, worker) for _ in range(3))
    complete(store, first, tags=frozenset({FINE}))
    failed = {"error": BROKEN, "in_transaction": True}
    sent = (
        outcome(first, Verdict.FAILED, **failed),
        outcome(second, Verdict.SUCCEEDED),
        outcome(third, Verdict.FAILED, **failed),
    )
    said = exchange(store, worker, *sent).reported
    assert [each.answer for each in said] == [
        Answer.ALREADY_APPLIED,
        Answer.APPLIED,
        Answer.APPLIED,
    ]
    states = [JobState.SUCCEEDED, JobState.SUCCEEDED, JobState.SCHEDULED]
    assert [state_of(store, job.id) for job in (first, second, third)] == states
    assert details(store, first.id).tags == {FINE}


def test_upkeep_settles_what_no_worker_came_back_for(store: Store, clock: VirtualClock) -> None:
    """D8."""
    job = start(store, register(store))
    complete(store, job, tags=frozenset({FINE}))
    swept = lapse(store, clock)
    assert (swept.settled, swept.lapsed) == (1, ())
    done = details(store, job.id)
    assert done.tags == {FINE}
    assert not done.record.unsettled
    assert maintain(store).settled == 0


def test_upkeep_settles_a_bounded_number_at_once_and_says_that_there_is_more(
    store: Store,
) -> None:
    """D8."""
    worker = register(store)
    jobs = [start(store, worker) for _ in range(3)]
    for job in jobs:
        complete(store, job)
    first, second = maintain(store, limit=2), maintain(store, limit=2)
    assert [(each.settled, each.more) for each in (first, second)] == [(2, True), (1, False)]
    assert not any(details(store, job.id).record.unsettled for job in jobs)


def test_a_completion_that_is_settled_changes_no_more(store: Store) -> None:
    """D8."""
    job = start(store, register(store))
    complete(store, job, tags=frozenset({FINE}))
    maintain(store)
    before = details(store, job.id)
    report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    maintain(store)
    assert details(store, job.id) == before


def test_a_lease_is_live_until_its_expiry_instant(store: Store, clock: VirtualClock) -> None:
    """C5, D8."""
    worker = register(store)
    clock.advance(LEASE - MICROSECOND)
    assert store.perform_sync(IsLeaseLive(worker))
    clock.advance(MICROSECOND)
    assert not store.perform_sync(IsLeaseLive(worker))


def test_a_worker_that_is_not_there_has_no_live_lease(store: Store) -> None:
    """D8."""
    assert not store.perform_sync(IsLeaseLive(WorkerId(fresh_job_id())))
