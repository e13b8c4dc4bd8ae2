"""Instants: what a duration leads to, what is due, and the whole numbers that stand for both."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from tidemill.values.ids import Attempt
from tidemill.values.jobs import NewJob
from tidemill.values.states import JobState

LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""The last instant that is stored: every database can hold it and every client can show it."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CENTURY: Final = timedelta(days=36_525)
_MICROSECOND: Final = timedelta(microseconds=1)


def after(now: datetime, wait: timedelta) -> datetime:
    """The instant `wait` from now, or `LATEST` where the calendar ends: never an error.

    A wait that a handler asked for is recorded with its outcome, and recording never fails (D6). A
    negative wait leads back a century at most.
    """
    return now + max(wait, -_CENTURY) if wait < LATEST - now else LATEST


def due_instant(job: NewJob, now: datetime) -> datetime:
    """The instant at which a job stored now is due, in UTC (clause F1)."""
    if job.due_at is not None:
        return job.due_at.astimezone(UTC)
    return now if job.delay is None else after(now, job.delay)


def first_state(due_at: datetime, now: datetime) -> JobState:
    """Where a job that is stored now begins (clause B)."""
    return JobState.READY if due_at <= now else JobState.SCHEDULED


def expiry(job: NewJob, now: datetime) -> datetime | None:
    """The instant at which a job stored now expires, in UTC; None if it never does."""
    if job.not_after is not None:
        return job.not_after.astimezone(UTC)
    return None if job.expires is None else after(now, job.expires)


def counted_from(instant: datetime, job: NewJob) -> NewJob:
    """The same job with its waits counted from this instant, whenever it is stored."""
    return replace(
        job,
        delay=None,
        due_at=job.due_at if job.delay is None else after(instant, job.delay),
        expires=None,
        not_after=job.not_after if job.expires is None else after(instant, job.expires),
    )


def has_expired(attempt: Attempt, not_after: datetime | None, now: datetime) -> bool:
    """Whether a job may not be started any more: only one that never was can expire (F1)."""
    return not attempt and not_after is not None and not_after <= now


def microseconds(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return duration // _MICROSECOND


def microseconds_since_1970(instant: datetime) -> int:
    """An aware instant in whole microseconds, the same in every time zone."""
    return (instant - _EPOCH) // _MICROSECOND
