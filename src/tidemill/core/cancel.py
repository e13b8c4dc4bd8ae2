"""Cancel: at once before a start, by request while running (clauses G1, G2, G4)."""

from __future__ import annotations

from tidemill.core.actions import done, unchanged
from tidemill.core.transitions import By, check
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import JobState


def cancelling(job_id: JobId, state: JobState) -> ActionResult:
    """What a cancel makes of a job."""
    if state.terminal:
        return unchanged(job_id, state)
    if state is JobState.RUNNING:
        return ActionResult(job_id=job_id, effect=Effect.REQUESTED, state=state)
    return done(job_id, check(state, JobState.CANCELLED, By.CANCEL))
