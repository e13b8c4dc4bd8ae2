"""Instants that a duration leads to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tidemill.values.jobs import NewJob

LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""The last instant that is stored: every database can hold it and every client can show it."""


def after(now: datetime, wait: timedelta) -> datetime:
    """The instant `wait` from now, or `LATEST` where the calendar ends: never an error.

    A wait that a handler asked for is recorded with its outcome, and recording never fails (D6).
    """
    return now + wait if wait < LATEST - now else LATEST


def expiry(job: NewJob, now: datetime) -> datetime | None:
    """The instant at which a job stored now expires, in UTC; None if it never does."""
    if job.not_after is not None:
        return job.not_after.astimezone(UTC)
    return None if job.expires is None else after(now, job.expires)
