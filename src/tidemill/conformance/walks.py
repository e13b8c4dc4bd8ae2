"""A way along every edge of the table, by operations alone.

A walk answers the job's id when the job stands before its edge, and takes the edge when it is
asked to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from tidemill.conformance.endstates import ENDED
from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    SECOND,
    cancel,
    claim_one,
    enqueue,
    enqueue_one,
    lapse,
    maintain,
    new_job,
    register,
    report,
    requeue,
    run_now,
    start,
)
from tidemill.core.transitions import By, Edge
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.ids import JobId
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

S = JobState
Walk = Callable[[Store, VirtualClock], Iterator[JobId]]

WALKS: Final[dict[tuple[Edge, By], Walk]] = {}

UNREACHABLE: Final = frozenset({((S.READY, S.DEAD), By.INTERRUPTION_LIMIT)})
"""Edges that no sequence of operations leads to: the sweep stops a poisonous job before it can be
ready again. The claim judges all the same, for rows that something else has changed."""


def walks(before: JobState | None, after: JobState, by: By) -> Callable[[Walk], Walk]:
    """Enter a walk under its edge."""

    def enter(walk: Walk) -> Walk:
        WALKS[(before, after), by] = walk
        return walk

    return enter


def reported(after: JobState, by: By, verdict: Verdict, retry: Retry, **rest: Any) -> None:
    """Enter a walk that a report takes from `running`."""

    @walks(S.RUNNING, after, by)
    def walk(store: Store, _: VirtualClock) -> Iterator[JobId]:
        job = start(store, register(store), retry=retry)
        yield job.id
        report(store, job, verdict, error=BROKEN, **rest)


def lapsed(after: JobState, by: By, retry: Retry) -> None:
    """Enter a walk that the sweep takes from `running`."""

    @walks(S.RUNNING, after, by)
    def walk(store: Store, clock: VirtualClock) -> Iterator[JobId]:
        yield start(store, register(store), retry=retry).id
        lapse(store, clock)


def unstarted(before: JobState) -> dict[str, Any]:
    """The wish of a job that stands in `before`."""
    return {"delay": timedelta(days=1)} if before is S.SCHEDULED else {}


def cancelled(before: JobState) -> None:
    """Enter the two ways in which a job that was not started is cancelled."""

    @walks(before, S.CANCELLED, By.CANCEL)
    def by_cancel(store: Store, _: VirtualClock) -> Iterator[JobId]:
        job_id = enqueue_one(store, **unstarted(before))
        yield job_id
        cancel(store, job_id)

    @walks(before, S.CANCELLED, By.EXPIRY)
    def by_expiry(store: Store, clock: VirtualClock) -> Iterator[JobId]:
        yield enqueue_one(store, not_after=clock() + SECOND, **unstarted(before))
        clock.advance(SECOND)
        maintain(store)


def requeued(before: JobState) -> None:
    """Enter the way back of a terminal job."""

    @walks(before, S.READY, By.REQUEUE)
    def walk(store: Store, _: VirtualClock) -> Iterator[JobId]:
        job_id = ENDED[before](store)
        yield job_id
        requeue(store, job_id)


@walks(None, S.READY, By.ENQUEUE)
def _stored(store: Store, _: VirtualClock) -> Iterator[JobId]:
    job = new_job()
    yield job.id
    enqueue(store, job)


@walks(None, S.SCHEDULED, By.ENQUEUE)
def _stored_for_later(store: Store, _: VirtualClock) -> Iterator[JobId]:
    job = new_job(delay=SECOND)
    yield job.id
    enqueue(store, job)


@walks(S.SCHEDULED, S.READY, By.DUE)
def _due(store: Store, clock: VirtualClock) -> Iterator[JobId]:
    worker = register(store)
    later = enqueue_one(store, delay=SECOND)
    ahead = enqueue_one(store, priority=1)
    yield later
    clock.advance(SECOND)
    assert claim_one(store, worker).id == ahead


@walks(S.SCHEDULED, S.READY, By.RUN_NOW)
def _run_now(store: Store, _: VirtualClock) -> Iterator[JobId]:
    job_id = enqueue_one(store, delay=SECOND)
    yield job_id
    run_now(store, job_id)


@walks(S.READY, S.RUNNING, By.CLAIM)
def _claim(store: Store, _: VirtualClock) -> Iterator[JobId]:
    yield enqueue_one(store)
    claim_one(store, register(store))


@walks(S.RUNNING, S.CANCELLED, By.CANCEL_HONOURED)
def _cancel_honoured(store: Store, _: VirtualClock) -> Iterator[JobId]:
    job = start(store, register(store))
    cancel(store, job.id)
    yield job.id
    report(store, job, Verdict.CANCELLED)


reported(S.SUCCEEDED, By.SUCCESS, Verdict.SUCCEEDED, Retry())
reported(S.SCHEDULED, By.FAILURE, Verdict.FAILED, Retry())
reported(S.SCHEDULED, By.SNOOZE, Verdict.SNOOZED, Retry(), delay=LEASE)
reported(S.READY, By.FAILURE, Verdict.FAILED, AT_ONCE)
reported(S.READY, By.SNOOZE, Verdict.SNOOZED, Retry())
reported(S.READY, By.RELEASE, Verdict.RELEASED, Retry())
reported(S.DEAD, By.FAILURE, Verdict.FAILED, Retry.never())
reported(S.DEAD, By.DISCARD, Verdict.DISCARDED, Retry())
reported(S.QUARANTINED, By.UNROUTABLE, Verdict.UNROUTABLE, Retry())
lapsed(S.SCHEDULED, By.LAPSE, Retry())
lapsed(S.READY, By.LAPSE, AT_ONCE)
lapsed(S.DEAD, By.LAPSE, Retry.exponential(max_attempts=1, count_lapses=True))
lapsed(S.DEAD, By.INTERRUPTION_LIMIT, Retry(interruption_limit=0))
for _before in (S.SCHEDULED, S.READY):
    cancelled(_before)
for _before in (S.DEAD, S.QUARANTINED, S.CANCELLED):
    requeued(_before)
