"""The store's own clock: what virtual time passes by, said without waiting (clauses A1, C, D).

Leases here last a day or nothing at all, and jobs were due yesterday or are due tomorrow, so that
no fact depends on how fast a machine is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidemill.conformance.scenes import (
    BROKEN,
    MILLER,
    SECOND,
    beat,
    claim,
    claim_one,
    details,
    enqueue_one,
    exchange,
    fresh_action,
    outcome,
    register,
    report,
    request,
    send,
    start,
    state_of,
)
from tidemill.store.contract import Store
from tidemill.store.lease import Maintain
from tidemill.store.monitor import ListWorkers
from tidemill.store.operators import Requeue
from tidemill.values import causes
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

DAY = timedelta(days=1)
NOTHING = timedelta(0)


def now(store: Store) -> datetime:
    """The store's time, as any worker hears it."""
    return exchange(store, register(store, lease=DAY)).now


def sweep(store: Store) -> list[object]:
    """Run one round of maintenance as a node whose lease is nothing; answer what lapsed."""
    return [lapsed.job_id for lapsed in store.perform_sync(Maintain(lease=NOTHING)).lapsed]


def test_the_stores_own_time_is_aware_and_in_utc(own_store: Store) -> None:
    """A1."""
    assert now(own_store).utcoffset() == NOTHING
    assert abs(now(own_store) - datetime.now(UTC)) < DAY


def test_the_instants_of_an_attempt_are_read_from_one_clock_that_goes_forward(
    own_store: Store,
) -> None:
    """A1, C3."""
    before = now(own_store)
    job = start(own_store, register(own_store, lease=DAY))
    report(own_store, job, Verdict.DISCARDED, error=BROKEN)
    ended = details(own_store, job.id)
    (attempt,) = ended.attempts
    instants = [
        before, ended.record.created_at, job.started_at, attempt.ended_at,
        ended.record.finished_at, now(own_store),
    ]  # fmt: skip
    known = [each for each in instants if each is not None]
    assert len(known) == len(instants)
    assert known == sorted(known)


def test_what_was_due_is_claimed_in_the_order_of_its_instants(own_store: Store) -> None:
    """C2, A1."""
    today = now(own_store)
    tomorrow = enqueue_one(own_store, due_at=today + DAY)
    late = enqueue_one(own_store, due_at=today - SECOND)
    early = enqueue_one(own_store, due_at=today - DAY)
    claimed = claim(own_store, register(own_store, lease=DAY), 9)
    assert [job.id for job in claimed] == [early, late]
    assert state_of(own_store, tomorrow) is JobState.SCHEDULED


def test_a_wait_of_a_day_is_told_and_nothing_is_claimed_before_it_is_over(
    own_store: Store,
) -> None:
    """C2, A1."""
    worker = register(own_store, lease=DAY)
    job = start(own_store, worker)
    report(own_store, job, Verdict.SNOOZED, delay=DAY)
    answered = exchange(own_store, worker, claim=request())
    assert answered.claimed == ()
    assert answered.next_due is not None
    assert DAY / 2 < answered.next_due <= DAY


def test_a_lease_of_nothing_is_dead_at_once(own_store: Store) -> None:
    """C4, C5, A1."""
    enqueue_one(own_store)
    worker = register(own_store, lease=NOTHING)
    answered = exchange(own_store, worker, claim=request())
    assert (answered.live, answered.claimed) == (False, ())
    assert not beat(own_store, worker).live


def test_a_lease_of_a_day_lives(own_store: Store) -> None:
    """C4, A1."""
    job = start(own_store, register(own_store, lease=DAY))
    assert beat(own_store, job.worker, lease=DAY).live
    assert sweep(own_store) == []
    assert report(own_store, job, Verdict.SUCCEEDED).answer is Answer.APPLIED


def test_no_report_passes_the_fence_once_the_lease_has_ended(own_store: Store) -> None:
    """D1, C5, A1."""
    plain = start(own_store, register(own_store, lease=DAY))
    rich = start(own_store, register(own_store, lease=DAY))
    for job, output in ((plain, None), (rich, b"1")):
        assert beat(own_store, job.worker, lease=NOTHING).live
        sent = outcome(job, Verdict.SUCCEEDED, output=output)
        assert send(own_store, job.worker, sent).answer is Answer.STALE
        assert state_of(own_store, job.id) is JobState.RUNNING


def test_the_sweep_ends_what_runs_under_a_lease_that_has_ended(own_store: Store) -> None:
    """C6, A1."""
    lost = start(own_store, register(own_store, lease=DAY))
    kept = start(own_store, register(own_store, lease=DAY))
    beat(own_store, lost.worker, lease=NOTHING)
    assert sweep(own_store) == [lost.id]
    assert state_of(own_store, kept.id) is JobState.RUNNING
    live = {row.id: row.live for row in own_store.perform_sync(ListWorkers())}
    assert (live[lost.worker], live[kept.worker]) == (False, True)


def test_what_expired_yesterday_is_not_started_and_what_expires_tomorrow_is(
    own_store: Store,
) -> None:
    """F1, A1."""
    today = now(own_store)
    late = enqueue_one(own_store, not_after=today - DAY)
    good = enqueue_one(own_store, not_after=today + DAY)
    assert claim_one(own_store, register(own_store, lease=DAY)).id == good
    record = details(own_store, late).record
    assert (record.state, record.cause) == (JobState.CANCELLED, causes.EXPIRED)


def test_a_backoff_counts_from_the_instant_of_the_report(own_store: Store) -> None:
    """A1, E2."""
    policy = Retry.fixed(DAY, jitter=0)
    job = start(own_store, register(own_store, lease=DAY), retry=policy)
    report(own_store, job, Verdict.FAILED, error=BROKEN)
    waiting = details(own_store, job.id)
    assert waiting.record.state is JobState.SCHEDULED
    assert waiting.record.due_at - waiting.attempts[0].ended_at == DAY


def test_a_requeued_job_is_due_on_the_stores_own_clock(own_store: Store) -> None:
    """A1, L1."""
    before = now(own_store)
    job = start(own_store, register(own_store, lease=DAY))
    report(own_store, job, Verdict.DISCARDED, error=BROKEN)
    own_store.perform_sync(Requeue(job_ids=(job.id,), actor=MILLER, action=fresh_action()))
    assert before <= details(own_store, job.id).record.due_at <= now(own_store)
    again = claim_one(own_store, register(own_store, lease=DAY))
    assert again.attempt == job.attempt + 1
