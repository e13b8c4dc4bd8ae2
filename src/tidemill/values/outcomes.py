"""How an attempt ended, and what the store answered to the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from tidemill.values.notes import LogLine, Progress
from tidemill.values.tags import Tag

if TYPE_CHECKING:
    from tidemill.values.ids import Attempt, JobId
    from tidemill.values.jobs import Holder, NewJob
    from tidemill.values.states import JobState


class Verdict(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    UNROUTABLE = "unroutable"
    RELEASED = "released"
    SNOOZED = "snoozed"
    LAPSED = "lapsed"
    """Never reported: the sweep writes it for an attempt whose lease ended by expiry."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What went wrong, as text that any store can hold (clause D6).

    Attributes:
        kind: the exception's name, `module.qualname`.
        message: its text.
        detail: its traceback, bounded; empty when capture is off.
        ancestry: names of the exception's classes, most special first; judged, not stored.
    """

    kind: str
    message: str
    detail: str = ""
    ancestry: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A verdict on one attempt with everything that commits with it.

    Attributes:
        delay: the wait a snooze asks for, or a failure that overrides its backoff.
        cause: why it is unroutable (`no-handler`, `payload`).
        output: the encoded return value of a success; None when there is none.
        tags: tags the handler added.
        children: jobs that are stored with a success, and with nothing else.
        progress: the attempt's last word of progress, where the store may not have it yet.
        lines: those of its log that the store may not have yet.
        in_transaction: the handler wrote a success in a transaction of its own, which may have
            committed (clause D8). If it has, that success stands; if not, this verdict counts.
    """

    job_id: JobId
    attempt: Attempt
    verdict: Verdict
    error: ErrorInfo | None = None
    delay: timedelta | None = None
    cause: str | None = None
    output: bytes | None = None
    tags: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()
    in_transaction: bool = False

    @property
    def leaves_keys(self) -> bool:
        """Whether a job that it leaves carries a key, which somebody else may be about to take."""
        return any(child.idempotency_key is not None for child in self.children)


class Answer(StrEnum):
    """What the store says to a report (clause D5)."""

    APPLIED = "applied"
    ALREADY_APPLIED = "already-applied"
    SUPERSEDED = "superseded"
    STALE = "stale"
    BUSY = "busy"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer to one outcome. `holder` says who holds a job whose report was stale."""

    job_id: JobId
    attempt: Attempt
    answer: Answer
    state: JobState | None = None
    holder: Holder | None = None
