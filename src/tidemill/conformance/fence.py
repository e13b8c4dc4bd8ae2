"""The fence: which report may write, and that no other one writes anything (clauses D1–D3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    MICROSECOND,
    beat,
    claim_one,
    details,
    enqueue_one,
    exchange,
    fail,
    fresh_job_id,
    halfway,
    lapse,
    line,
    new_job,
    outcome,
    register,
    report,
    request,
    requeue,
    send,
    start,
    state_of,
)
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs, GetJob
from tidemill.values.ids import Attempt, WorkerId
from tidemill.values.jobs import Holder, JobDetails
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

REPORTABLE = [verdict for verdict in Verdict if verdict is not Verdict.LAPSED]


def assert_stale(
    store: Store, before: JobDetails, worker: WorkerId, sent: Outcome, reported: Reported
) -> None:
    """The report was rejected, and left nothing but a record that names both sides."""
    record = before.record
    holder = Holder(record.worker, record.attempt, record.state)
    assert reported == Reported(
        record.id, sent.attempt, Answer.STALE, state=record.state, holder=holder
    )
    now = details(store, record.id)
    assert replace(now, attempts=before.attempts) == before
    *old, stale = now.attempts
    assert tuple(old) == before.attempts
    assert stale.stale
    assert (stale.worker, stale.attempt) == (worker, sent.attempt)
    assert stale.holder == holder
    assert stale.verdict is sent.verdict
    assert not any(store.perform_sync(GetJob(child.id)) for child in sent.children)


def rich(sent: Outcome) -> Outcome:
    """The outcome with everything that it could carry."""
    return replace(
        sent,
        output=b'"flour"',
        tags=frozenset({Tag("fine"), Tag("run", "7")}),
        children=(new_job(), new_job(idempotency_key="of a stale report")),
        progress=halfway(),
        lines=(line(1), line(2)),
    )


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_a_report_of_the_holder_applies(store: Store, verdict: Verdict) -> None:
    """D1."""
    job = start(store, register(store))
    assert report(store, job, verdict).answer is Answer.APPLIED
    assert state_of(store, job.id) is not JobState.RUNNING


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_the_right_attempt_from_the_wrong_worker_is_stale(store: Store, verdict: Verdict) -> None:
    """D1, D2: whatever the verdict."""
    job = start(store, register(store))
    other = register(store)
    before = details(store, job.id)
    sent = rich(outcome(job, verdict, error=BROKEN))
    assert_stale(store, before, other, sent, send(store, other, sent))


@pytest.mark.parametrize("verdict", REPORTABLE)
@pytest.mark.parametrize("attempt", [0, 2, 4])
def test_the_right_worker_with_the_wrong_attempt_is_stale(
    store: Store, clock: VirtualClock, verdict: Verdict, attempt: int
) -> None:
    """D1, D2, A4."""
    worker = register(store)
    first = start(store, worker, retry=AT_ONCE)
    report(store, first, Verdict.RELEASED)
    claim_one(store, worker)
    lapse(store, clock)
    worker = register(store)
    assert claim_one(store, worker).attempt not in {0, 2, 4}
    before = details(store, first.id)
    sent = rich(replace(outcome(first, verdict, error=BROKEN), attempt=Attempt(attempt)))
    assert_stale(store, before, worker, sent, send(store, worker, sent))


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_the_right_pair_with_a_dead_lease_is_stale(
    store: Store, clock: VirtualClock, verdict: Verdict
) -> None:
    """D1, D2, C5: the lease is dead at its expiry instant, swept or not."""
    job = start(store, register(store))
    clock.advance(LEASE)
    before = details(store, job.id)
    sent = rich(outcome(job, verdict, error=BROKEN))
    assert_stale(store, before, job.worker, sent, send(store, job.worker, sent))


def test_a_report_in_the_last_microsecond_of_the_lease_applies(
    store: Store, clock: VirtualClock
) -> None:
    """D1, C5."""
    job = start(store, register(store))
    clock.advance(LEASE - MICROSECOND)
    assert report(store, job, Verdict.SUCCEEDED).answer is Answer.APPLIED


def test_a_lease_that_lapsed_stays_dead_for_reports_when_the_clock_steps_back(
    store: Store, clock: VirtualClock
) -> None:
    """D1, A3."""
    job = start(store, register(store))
    clock.advance(LEASE)
    assert not beat(store, job.worker).live
    clock.advance(-LEASE / 2)
    assert report(store, job, Verdict.SUCCEEDED).answer is Answer.STALE


def test_a_report_of_an_unknown_worker_is_stale(store: Store) -> None:
    """D1."""
    job = start(store, register(store))
    before = details(store, job.id)
    stranger = WorkerId(fresh_job_id())
    sent = outcome(job, Verdict.SUCCEEDED)
    assert_stale(store, before, stranger, sent, send(store, stranger, sent))


def test_a_report_on_a_job_that_never_ran_is_stale(store: Store) -> None:
    """D1."""
    job_id = enqueue_one(store)
    worker = register(store)
    before = details(store, job_id)
    sent = Outcome(job_id=job_id, attempt=Attempt(0), verdict=Verdict.SUCCEEDED)
    assert_stale(store, before, worker, sent, send(store, worker, sent))


def test_a_late_finish_of_a_worker_that_lost_its_job_changes_nothing_of_its_successor(
    store: Store, clock: VirtualClock
) -> None:
    """D1, C6."""
    late = start(store, register(store), retry=AT_ONCE)
    lapse(store, clock)
    successor = claim_one(store, register(store))
    before = details(store, late.id)
    sent = rich(outcome(late, Verdict.SUCCEEDED))
    assert_stale(store, before, late.worker, sent, send(store, late.worker, sent))
    assert report(store, successor, Verdict.SUCCEEDED).answer is Answer.APPLIED


def test_an_old_report_does_not_pass_for_the_new_attempt_of_the_same_worker(store: Store) -> None:
    """D1, A4: ABA. Same worker, job dead, requeued, claimed again: only the attempt differs."""
    worker = register(store)
    old = start(store, worker)
    report(store, old, Verdict.DISCARDED, error=BROKEN)
    requeue(store, old.id)
    new = claim_one(store, worker)
    assert (new.id, new.worker) == (old.id, old.worker)
    before = details(store, old.id)
    sent = rich(outcome(old, Verdict.SUCCEEDED))
    assert_stale(store, before, worker, sent, send(store, worker, sent))


def test_a_report_after_the_job_ended_otherwise_is_stale(store: Store, clock: VirtualClock) -> None:
    """D1, D5: the sweep ended it; the worker's own verdict comes too late."""
    job = start(store, register(store))
    lapse(store, clock)
    before = details(store, job.id)
    sent = outcome(job, Verdict.FAILED, error=BROKEN)
    assert_stale(store, before, job.worker, sent, send(store, job.worker, sent))


def test_a_success_that_contradicts_the_recorded_end_is_stale(store: Store) -> None:
    """D1, D5."""
    job = start(store, register(store))
    fail(store, job)
    before = details(store, job.id)
    sent = rich(outcome(job, Verdict.SUCCEEDED))
    assert_stale(store, before, job.worker, sent, send(store, job.worker, sent))


def test_a_failure_that_contradicts_a_recorded_success_is_stale(store: Store) -> None:
    """D1, D5."""
    job = start(store, register(store))
    report(store, job, Verdict.SUCCEEDED, output=b"1")
    before = details(store, job.id)
    sent = outcome(job, Verdict.FAILED, error=BROKEN)
    assert_stale(store, before, job.worker, sent, send(store, job.worker, sent))


def test_stale_records_are_bounded_and_never_push_out_the_record_of_an_end(store: Store) -> None:
    """D1, E5."""
    job = start(store, register(store))
    fail(store, job)
    other = register(store)
    for _ in range(store.bounds.attempts_kept + 3):
        send(store, other, outcome(job, Verdict.SUCCEEDED))
    kept = details(store, job.id).attempts
    assert [record.verdict for record in kept if not record.stale] == [Verdict.FAILED]
    assert sum(record.stale for record in kept) == store.bounds.attempts_kept


def test_a_report_on_a_job_that_is_not_there_is_gone_and_writes_nothing(store: Store) -> None:
    """D5."""
    job_id = fresh_job_id()
    sent = Outcome(job_id=job_id, attempt=Attempt(1), verdict=Verdict.SUCCEEDED)
    assert send(store, register(store), sent) == Reported(job_id, Attempt(1), Answer.GONE)
    assert store.perform_sync(GetJob(job_id)) is None
    assert store.perform_sync(CountJobs()) == ()


def test_a_stale_report_takes_nothing_from_the_claim_in_the_same_exchange(store: Store) -> None:
    """D1, D4."""
    job = start(store, register(store))
    other = register(store)
    waiting = enqueue_one(store)
    answered = exchange(store, other, outcome(job, Verdict.SUCCEEDED), claim=request())
    assert [reported.answer for reported in answered.reported] == [Answer.STALE]
    assert [claimed.id for claimed in answered.claimed] == [waiting]
