"""Rerun: a new job with the content of a terminal one (clause L1)."""

from __future__ import annotations

from tidemill.core.actions import unchanged
from tidemill.errors import JobIdConflict
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobRecord, NewJob
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import JobState
from tidemill.values.tags import Tag


def rerunning(job_id: JobId, state: JobState, new_id: JobId) -> ActionResult:
    """What a rerun makes of a job: nothing but a copy, and only of a terminal one."""
    if not state.terminal:
        return unchanged(job_id, state)
    return ActionResult(job_id=job_id, effect=Effect.DONE, state=state, other=new_id)


def copy_of(record: JobRecord, payload: bytes, tags: frozenset[Tag], new_id: JobId) -> NewJob:
    """The content of a job as a new request: its key and its expiry spoke of the first one."""
    return NewJob(
        id=new_id,
        wire_name=record.wire_name,
        payload=payload,
        queue=record.queue,
        priority=record.priority,
        timeout=record.timeout,
        retry=record.retry,
        tenant=record.tenant,
        tags=tags,
        trace_context=record.trace_context,
        rerun_of=record.id,
    )


def id_taken(new_id: JobId) -> JobIdConflict:
    """The refusal of a rerun under an id that some job has."""
    return JobIdConflict(
        f"Job id {new_id} is taken; nothing was written. Give the rerun an id of its own."
    )
