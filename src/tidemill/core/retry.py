"""Backoff: how long the next try waits (clauses E1 and E2)."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from typing import assert_never

from tidemill.values.ids import Attempt, JobId
from tidemill.values.retry import Backoff, Retry

_NOTHING = timedelta(0)
_LONGEST = timedelta(days=36_525).total_seconds()
"""A century: no wait is longer, whatever the policy's cap, so that none leaves the calendar."""


def backoff(retry: Retry, tries: int, job_id: JobId, attempt: Attempt) -> timedelta:
    """The wait after the `tries`-th ended try (from 1) since the last requeue.

    The jitter is drawn from a hash of (job id, attempt), so that the same attempt always waits the
    same time, wherever it is judged.
    """
    base = min(_base(retry, tries), retry.cap)
    spread = 1 + retry.jitter * _share(job_id, attempt)
    return timedelta(seconds=min(base.total_seconds() * spread, _LONGEST))


def _base(retry: Retry, tries: int) -> timedelta:
    match retry.backoff:
        case Backoff.NONE:
            return _NOTHING
        case Backoff.FIXED:
            return retry.delays[0]
        case Backoff.LISTED:
            return retry.delays[min(tries, len(retry.delays)) - 1]
        case Backoff.EXPONENTIAL:
            return _grown(retry, tries)
        case _:
            assert_never(retry.backoff)


def _grown(retry: Retry, tries: int) -> timedelta:
    seconds = retry.delays[0].total_seconds()
    cap = min(retry.cap.total_seconds(), _LONGEST)
    for _ in range(tries - 1):
        if seconds >= cap or seconds == 0:
            break
        seconds *= retry.factor
        if retry.factor == 1:
            break
    return timedelta(seconds=min(seconds, cap))


def _share(job_id: JobId, attempt: Attempt) -> float:
    """A number from -1 to 1 that only (job id, attempt) decides."""
    digest = blake2b(job_id.bytes + attempt.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / (1 << 63) - 1
