"""Operator actions: each is done once, and its id belongs to one action alone (clause L1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemill.errors import ActionIdReused
from tidemill.values.ids import ActionId, JobId
from tidemill.values.operators import ActionResult, Effect, QueueResult
from tidemill.values.states import JobState

_SHOWN: Final = 3

Done = Sequence[ActionResult] | Sequence[QueueResult]
"""What an action was answered, for each thing it named."""


def require_repeat(
    action: ActionId, asked: tuple[str, Sequence[str]], kind: str, done: Done
) -> None:
    """Refuse an action under an id that was given to another one before.

    Args:
        action: the id.
        asked: the kind of action now, and what it names.
        kind: the kind of action then.
        done: what that was answered.

    Raises:
        ActionIdReused: it is not the same action again.
    """
    before = (kind, tuple(_target(each) for each in done))
    now = (asked[0], tuple(asked[1]))
    if now != before:
        message = (
            f"Action id {action} belongs to a {_said(*before)} and cannot name a {_said(*now)}; "
            "nothing was written. Give every action an id of its own."
        )
        raise ActionIdReused(message)


def job_target(job_id: JobId) -> str:
    """How an action names a job."""
    return f"job {job_id}"


def queue_target(queue: str, *, paused: bool) -> str:
    """How an action names a queue, and what it makes of it."""
    return f"queue {queue!r}, to be {'paused' if paused else 'resumed'}"


def _target(result: ActionResult | QueueResult) -> str:
    if isinstance(result, QueueResult):
        return queue_target(result.queue, paused=result.paused)
    return job_target(result.job_id)


def _said(kind: str, targets: tuple[str, ...]) -> str:
    more = f" and {len(targets) - _SHOWN} more" if len(targets) > _SHOWN else ""
    return f"{kind} of {', '.join(targets[:_SHOWN]) or 'nothing'}{more}"


def not_found(job_id: JobId) -> ActionResult:
    """The answer to an action on a job that is not there."""
    return ActionResult(job_id=job_id, effect=Effect.NOT_FOUND)


def unchanged(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action that the job's state does not allow."""
    return ActionResult(job_id=job_id, effect=Effect.UNCHANGED, state=state)


def done(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action that left the job in `state`."""
    return ActionResult(job_id=job_id, effect=Effect.DONE, state=state)


def busy(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action on a job whose row somebody else holds."""
    return ActionResult(job_id=job_id, effect=Effect.BUSY, state=state)


def unreadable(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action that would run a job whose row cannot be read."""
    return ActionResult(job_id=job_id, effect=Effect.UNREADABLE, state=state)
