"""What an operator action did to a job, or to a queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidemill.values.ids import JobId
from tidemill.values.states import JobState


class Effect(StrEnum):
    """What became of an operator action on one job or one queue."""

    DONE = "done"
    REQUESTED = "requested"
    """A running job was asked to cancel; its worker hears of it at its next poll."""
    UNCHANGED = "unchanged"
    """It is so already, or the job's state does not allow it; nothing was written."""
    KEY_HELD = "key-held"
    """Another active job carries the idempotency key now; nothing was written."""
    UNREADABLE = "unreadable"
    """Its row still cannot be read, so nothing could run it; nothing was written."""
    BUSY = "busy"
    """Another transaction holds its row, such as one in which a handler completes it; nothing was
    written. Ask again, as a new action."""
    NOT_FOUND = "not-found"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The effect of one action on one job.

    `state` is the job's state afterwards; `other` is the job that holds the key (`key-held`) or
    the new job a rerun made (`done`).
    """

    job_id: JobId
    effect: Effect
    state: JobState | None = None
    other: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResult:
    """The effect of one action on one queue: `done`, or `unchanged` if it was so before.

    `paused` is how the queue stands afterwards.
    """

    queue: str
    effect: Effect
    paused: bool
