"""Requeue: a job that ended otherwise than well becomes ready again (clauses B, F3, L1)."""

from __future__ import annotations

from tidemill.core.actions import done, unchanged
from tidemill.core.transitions import By, check
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import REQUEUEABLE, JobState


def requeueing(job_id: JobId, state: JobState, holder: JobId | None) -> ActionResult:
    """What a requeue makes of a job; `holder` is the active job that has its key, if any."""
    if state not in REQUEUEABLE:
        return unchanged(job_id, state)
    if holder is not None:
        return ActionResult(job_id=job_id, effect=Effect.KEY_HELD, state=state, other=holder)
    return done(job_id, check(state, JobState.READY, By.REQUEUE))
