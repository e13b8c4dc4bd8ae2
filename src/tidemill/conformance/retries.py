"""Retries: budgets, backoff, lapses and poison (clauses E1–E5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    SECOND,
    claim,
    claim_one,
    details,
    fail,
    lapse,
    register,
    report,
    requeue,
    start,
    state_of,
    wait_until_due,
)
from tidemill.core.retry import backoff
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values import causes
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.jobs import JobRecord
from tidemill.values.outcomes import ErrorInfo, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

EVERY_POLICY = [
    Retry(),
    Retry.fixed(timedelta(minutes=3), jitter=0.5),
    Retry.listed(SECOND, 5 * SECOND, jitter=0),
    Retry.exponential(first=2 * SECOND, factor=3, cap=10 * SECOND, max_attempts=9),
]


def record_of(store: Store, job_id: JobId) -> JobRecord:
    """The row of a job."""
    return details(store, job_id).record


def fail_again(store: Store, clock: VirtualClock, worker: WorkerId, job_id: JobId) -> None:
    """Wait out the backoff, claim and fail once more."""
    wait_until_due(store, clock, job_id)
    fail(store, claim_one(store, worker))


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_a_policy_travels_with_its_job_unchanged(store: Store, policy: Retry) -> None:
    """E1."""
    job = start(store, register(store), retry=policy)
    assert job.retry == policy
    assert record_of(store, job.id).retry == policy


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_a_failure_waits_out_the_backoff_that_its_job_and_attempt_decide(
    store: Store, clock: VirtualClock, policy: Retry
) -> None:
    """E1, E2: the same attempt always waits the same time, wherever it is judged."""
    worker = register(store, lease=timedelta(days=1))
    job = start(store, worker, retry=policy)
    for tries in range(1, policy.max_attempts):
        fail(store, job)
        ended = record_of(store, job.id)
        assert ended.state is JobState.SCHEDULED
        assert ended.due_at == clock() + backoff(policy, tries, job.id, job.attempt)
        wait_until_due(store, clock, job.id)
        job = claim_one(store, worker)


def test_the_default_policy_waits_about_five_seconds_then_twice_as_long(
    store: Store, clock: VirtualClock
) -> None:
    """E1."""
    worker = register(store)
    job = start(store, worker)
    for seconds in (5, 10, 20):
        fail(store, job)
        waits = (record_of(store, job.id).due_at - clock()).total_seconds()
        assert seconds * 0.9 <= waits <= seconds * 1.1
        wait_until_due(store, clock, job.id)
        job = claim_one(store, worker)


def test_a_policy_without_backoff_is_ready_at_once(store: Store) -> None:
    """E1."""
    job = start(store, register(store), retry=AT_ONCE)
    fail(store, job)
    assert state_of(store, job.id) is JobState.READY


def test_a_failure_may_ask_for_its_own_wait(store: Store, clock: VirtualClock) -> None:
    """E3."""
    job = start(store, register(store))
    fail(store, job, delay=timedelta(minutes=7))
    assert record_of(store, job.id).due_at == clock() + timedelta(minutes=7)


def test_a_wait_past_the_end_of_the_calendar_is_recorded(store: Store) -> None:
    """E3, D6."""
    job = start(store, register(store))
    report(store, job, Verdict.SNOOZED, delay=timedelta.max)
    assert state_of(store, job.id) is JobState.SCHEDULED


def test_a_job_is_dead_when_its_attempts_are_used_up(store: Store, clock: VirtualClock) -> None:
    """E2, B2."""
    worker = register(store)
    job = start(store, worker, retry=Retry(max_attempts=3))
    fail(store, job)
    fail_again(store, clock, worker, job.id)
    assert state_of(store, job.id) is JobState.SCHEDULED
    fail_again(store, clock, worker, job.id)
    ended = record_of(store, job.id)
    assert (ended.state, ended.cause) == (JobState.DEAD, causes.ATTEMPTS_EXHAUSTED)
    assert (ended.failures, ended.attempt) == (3, 3)


def test_a_job_that_may_be_tried_once_is_dead_at_its_first_failure(store: Store) -> None:
    """E2."""
    job = start(store, register(store), retry=Retry.never())
    assert fail(store, job).state is JobState.DEAD


@pytest.mark.parametrize("verdict", [Verdict.RELEASED, Verdict.SNOOZED])
def test_releases_and_snoozes_cost_nothing(store: Store, verdict: Verdict) -> None:
    """E2."""
    worker = register(store)
    job = start(store, worker, retry=Retry(max_attempts=2))
    for _ in range(5):
        report(store, job, verdict)
        job = claim_one(store, worker)
    ended = record_of(store, job.id)
    assert (ended.failures, ended.lapses, ended.attempt) == (0, 0, 6)
    assert fail(store, job).state is JobState.SCHEDULED


def test_a_released_job_keeps_its_place_in_line(store: Store, clock: VirtualClock) -> None:
    """E2."""
    job = start(store, register(store))
    clock.advance(SECOND)
    report(store, job, Verdict.RELEASED)
    assert record_of(store, job.id).due_at == job.due_at


def test_a_snoozed_job_is_due_when_it_asked_to_be(store: Store, clock: VirtualClock) -> None:
    """E3."""
    job = start(store, register(store))
    assert report(store, job, Verdict.SNOOZED, delay=SECOND).state is JobState.SCHEDULED
    assert record_of(store, job.id).due_at == clock() + SECOND
    assert claim(store, job.worker) == ()
    clock.advance(SECOND)
    assert claim_one(store, job.worker).id == job.id


def test_a_discarded_job_is_dead_at_once(store: Store) -> None:
    """E3, B2."""
    job = start(store, register(store))
    report(store, job, Verdict.DISCARDED, error=BROKEN)
    ended = record_of(store, job.id)
    assert (ended.state, ended.cause, ended.failures) == (JobState.DEAD, causes.DISCARDED, 1)


def test_an_exception_that_the_policy_discards_ends_the_job(store: Store) -> None:
    """E3: by the name of the exception or of any class it is made from."""
    job = start(store, register(store), retry=Retry(discard_on=("LookupError",)))
    fail(store, job, error=ErrorInfo("KeyError", "", ancestry=("KeyError", "LookupError")))
    assert record_of(store, job.id).cause == causes.DISCARDED


def test_an_exception_that_the_policy_does_not_retry_ends_the_job(store: Store) -> None:
    """E3."""
    worker = register(store)
    policy = Retry(retry_on=("OSError",))
    retried = start(store, worker, retry=policy)
    fail(store, retried, error=ErrorInfo("OSError", ""))
    assert state_of(store, retried.id) is JobState.SCHEDULED
    ended = start(store, worker, retry=policy)
    fail(store, ended)
    assert record_of(store, ended.id).cause == causes.NOT_RETRYABLE


def test_a_lapse_waits_out_the_backoff(store: Store, clock: VirtualClock) -> None:
    """E2."""
    job = start(store, register(store))
    lapse(store, clock)
    ended = record_of(store, job.id)
    assert ended.state is JobState.SCHEDULED
    assert ended.due_at == clock() + backoff(ended.retry, 1, job.id, job.attempt)
    assert (ended.failures, ended.lapses) == (0, 1)


def test_lapses_do_not_spend_the_budget(store: Store, clock: VirtualClock) -> None:
    """E2: not even when one failure is all that is left of it."""
    job = start(store, register(store), retry=Retry.immediate(max_attempts=2))
    fail(store, job)
    job = claim_one(store, job.worker)
    for _ in range(3):
        lapse(store, clock)
        job = claim_one(store, register(store))
    assert fail(store, job).state is JobState.DEAD


def test_lapses_spend_the_budget_where_the_policy_counts_them(
    store: Store, clock: VirtualClock
) -> None:
    """E2."""
    policy = Retry.exponential(max_attempts=3, count_lapses=True)
    worker = register(store)
    job = start(store, worker, retry=policy)
    fail(store, job)
    wait_until_due(store, clock, job.id)
    claim_one(store, worker)
    lapse(store, clock)
    assert state_of(store, job.id) is JobState.SCHEDULED
    wait_until_due(store, clock, job.id)
    claim_one(store, register(store))
    (lapsed,) = lapse(store, clock).lapsed
    assert (lapsed.state, lapsed.cause) == (JobState.DEAD, causes.ATTEMPTS_EXHAUSTED)


def test_a_job_that_keeps_killing_its_worker_ends_as_poison_and_runs_no_more(
    store: Store, clock: VirtualClock
) -> None:
    """E4."""
    policy = Retry(max_attempts=2, interruption_limit=2, jitter=0)
    job = start(store, register(store), retry=policy)
    for _ in range(2):
        lapse(store, clock)
        wait_until_due(store, clock, job.id)
        job = claim_one(store, register(store))
    (lapsed,) = lapse(store, clock).lapsed
    assert (lapsed.state, lapsed.cause) == (JobState.DEAD, causes.POISON)
    ended = record_of(store, job.id)
    assert (ended.state, ended.cause, ended.lapses) == (JobState.DEAD, causes.POISON, 3)
    clock.advance(timedelta(days=1))
    assert claim(store, register(store)) == ()


def test_an_interruption_limit_of_nothing_makes_the_first_lapse_fatal(
    store: Store, clock: VirtualClock
) -> None:
    """E4."""
    job = start(store, register(store), retry=Retry(interruption_limit=0))
    lapse(store, clock)
    assert record_of(store, job.id).cause == causes.POISON


def test_a_requeue_gives_a_poisonous_job_its_whole_interruption_limit_again(
    store: Store, clock: VirtualClock
) -> None:
    """E4, E2."""
    policy = Retry(interruption_limit=1, jitter=0)
    job = start(store, register(store), retry=policy)
    for _ in range(2):
        lapse(store, clock)
        if state_of(store, job.id) is JobState.DEAD:
            break
        wait_until_due(store, clock, job.id)
        claim_one(store, register(store))
    assert record_of(store, job.id).cause == causes.POISON
    requeue(store, job.id)
    claim_one(store, register(store))
    lapse(store, clock)
    assert state_of(store, job.id) is JobState.SCHEDULED


def test_a_requeue_gives_a_fresh_budget_while_the_counters_stay(store: Store) -> None:
    """E2, E5, A4."""
    worker = register(store)
    job = start(store, worker, retry=Retry.immediate(max_attempts=2))
    fail(store, job)
    fail(store, claim_one(store, worker))
    requeue(store, job.id)
    requeued = record_of(store, job.id)
    assert (requeued.failures, requeued.failures_base, requeued.attempt) == (2, 2, 2)
    third = claim_one(store, worker)
    assert third.attempt == requeued.attempt + 1
    assert fail(store, third).state is JobState.READY
    assert fail(store, claim_one(store, worker)).state is JobState.DEAD


def test_the_last_attempts_are_kept_oldest_first_and_the_counters_are_not_pruned(
    store: Store,
) -> None:
    """E5."""
    kept = store.bounds.attempts_kept
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    fail(store, job)
    for _ in range(kept + 1):
        fail(store, claim_one(store, worker))
    ended = details(store, job.id)
    assert [record.attempt for record in ended.attempts] == list(range(3, kept + 3))
    assert ended.record.failures == kept + 2
