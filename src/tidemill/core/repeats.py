"""Repeated requests: the same id with the same content is the same job (clause A2)."""

from __future__ import annotations

from tidemill.errors import JobIdConflict
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued
from tidemill.values.states import JobState


def repeated(job_id: JobId, state: JobState, stored: bytes, asked: bytes) -> Enqueued:
    """The answer to a request under an id that is stored, by the digests of both contents.

    Raises:
        JobIdConflict: the contents differ.
    """
    if stored != asked:
        message = (
            f"Job id {job_id} is taken by a job with other content; nothing was written. "
            "Give every new job an id of its own."
        )
        raise JobIdConflict(message)
    return Enqueued(job_id, state, repeated=True)
