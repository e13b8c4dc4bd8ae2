"""What an attempt says of itself while it runs: its progress and its log lines (clause D2)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Self, cast

from tidemill.values.ids import Attempt, JobId


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt has come; each word of it replaces the one before.

    Attributes:
        fraction: from 0 to 1; None where it cannot be said.
        message: what is being done.
        at: when it was said (UTC, the store's clock as the worker knows it).
    """

    fraction: float | None
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a handler logged.

    Attributes:
        number: its place among the lines of its attempt, from 1.
        at: when it was logged (UTC, the store's clock as the worker knows it).
        fields: what was said beside the message, as one JSON object; empty when nothing was.
    """

    number: int
    at: datetime
    message: str
    fields: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What one running attempt has said since its last note; None and empty where nothing."""

    job_id: JobId
    attempt: Attempt
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What a job's latest word of progress was, and which attempt said it.

    Attributes:
        fraction: from 0 to 1; None where it could not be said.
        at: when it was said (UTC).
    """

    attempt: Attempt
    fraction: float | None
    message: str
    at: datetime

    @classmethod
    def of(cls, attempt: Attempt, word: Progress) -> Self:
        """What this attempt said."""
        return cls(attempt=attempt, fraction=word.fraction, message=word.message, at=word.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One line of a job's log, and which attempt logged it.

    Attributes:
        number: its place among the lines of its attempt, from 1.
        at: when it was logged (UTC).
        fields: what was said beside the message, as one JSON object; empty when nothing was.
    """

    attempt: Attempt
    number: int
    at: datetime
    message: str
    fields: str = ""

    @property
    def values(self) -> dict[str, object]:
        """What was said beside the message, by name; empty if it cannot be read."""
        try:
            read: object = json.loads(self.fields) if self.fields else {}
        except (ValueError, RecursionError):
            return {}
        return cast("dict[str, object]", read) if isinstance(read, dict) else {}


@dataclass(frozen=True, slots=True)
class LogPage:
    """One page of a job's log, oldest first; the opaque cursor of the next is None at the end."""

    lines: tuple[JobLine, ...]
    next_cursor: str | None
