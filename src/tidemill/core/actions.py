"""Operator actions: each is done once, and its id belongs to one kind of action (clause L1)."""

from __future__ import annotations

from tidemill.errors import InvalidValue
from tidemill.values.ids import ActionId, JobId
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import JobState


def require_kind(action: ActionId, kind: str, done: str) -> None:
    """Refuse an action under an id that named one of another kind, which was `done`.

    Raises:
        InvalidValue: it did.
    """
    if kind != done:
        message = (
            f"Action id {action} belongs to a {done} and cannot name a {kind}; nothing was "
            "written. Give every action an id of its own."
        )
        raise InvalidValue(message)


def not_found(job_id: JobId) -> ActionResult:
    """The answer to an action on a job that is not there."""
    return ActionResult(job_id=job_id, effect=Effect.NOT_FOUND)


def unchanged(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action that the job's state does not allow."""
    return ActionResult(job_id=job_id, effect=Effect.UNCHANGED, state=state)


def done(job_id: JobId, state: JobState) -> ActionResult:
    """The answer to an action that left the job in `state`."""
    return ActionResult(job_id=job_id, effect=Effect.DONE, state=state)
