"""How a handler's execution ended, before anyone has judged it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.tags import Tag


class CancelReason(StrEnum):
    """Why a handler is asked to stop (clause G3)."""

    OPERATOR = "operator"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease-lost"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler returned. `output` is its encoded value, None when it returned None.

    `children` are the jobs that it left to be stored with its success.
    """

    output: bytes | None = None
    tags: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised. `delay` is what a `RetryAfter` asked for instead of the backoff."""

    error: ErrorInfo
    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Discarded:
    """The handler raised `Discard`: the job is not worth another attempt."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler raised `Snooze`: come back later, at no cost."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Stopped:
    """The handler stopped because it was cancelled."""


@dataclass(frozen=True, slots=True)
class Unroutable:
    """There was nothing to run: no handler of that name, or a payload that does not decode."""

    cause: str
    error: ErrorInfo


Ending = Returned | Raised | Discarded | Snoozed | Stopped | Unroutable
