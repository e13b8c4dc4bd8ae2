"""Run now: a scheduled job becomes ready before it is due, at no cost (clauses B, L1)."""

from __future__ import annotations

from tidemill.core.actions import done, unchanged
from tidemill.core.transitions import By, check
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult
from tidemill.values.states import JobState


def running_now(job_id: JobId, state: JobState) -> ActionResult:
    """What "run now" makes of a job."""
    if state is not JobState.SCHEDULED:
        return unchanged(job_id, state)
    return done(job_id, check(state, JobState.READY, By.RUN_NOW))
