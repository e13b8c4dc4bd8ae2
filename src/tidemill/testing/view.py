"""A job as a test looks at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from tidemill.monitor import AnyJob
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import AttemptRecord, JobDetails, JobRecord
from tidemill.values.notes import JobLine, JobProgress
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.states import JobState
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job at the instant it was looked at; look again to see what changed.

    Attributes:
        state: compares equal to its word: `job.state == "succeeded"`.
        cause: why it is in its terminal state, such as `attempts-exhausted`; None if it is not,
            or succeeded.
        arguments: what it was enqueued with, by parameter name, as plain JSON values. What the
            call left out is not there.
        payload: the same as it is stored.
        output: what its handler returned, as a plain JSON value. `ref.result()` reads it as its
            type.
        attempt: how often it was started.
        attempts: how its attempts ended, oldest first, the successful one excepted.
        log: the last lines that its handler logged, oldest first; `mill.jobs.log` reads all.
        record: everything else that is known of it.
    """

    id: JobId
    wire_name: str
    queue: str
    state: JobState
    cause: str | None
    due_at: datetime
    attempt: Attempt
    arguments: dict[str, Any]
    output: Any
    tags: frozenset[Tag]
    payload: bytes = field(repr=False)
    attempts: tuple[AttemptRecord, ...] = field(repr=False)
    log: tuple[JobLine, ...] = field(repr=False)
    record: JobRecord = field(repr=False)

    @property
    def progress(self) -> JobProgress | None:
        """The last word of progress; None before the first."""
        return self.record.progress

    @property
    def error(self) -> ErrorInfo | None:
        """What the last attempt that did not succeed ended with; None if there is no such."""
        errors = [each.error for each in self.attempts if not each.stale]
        return errors[-1] if errors else None


Job = AnyJob | JobView
"""A job by its reference, its id, the text of its id, or how it was looked at before."""


def known(job: Job) -> AnyJob:
    """What the app's own verbs know the job by."""
    return job.id if isinstance(job, JobView) else job


def view_of(details: JobDetails) -> JobView:
    """The view of a stored job."""
    record = details.record
    return JobView(
        id=record.id,
        wire_name=record.wire_name,
        queue=record.queue,
        state=record.state,
        cause=record.cause,
        due_at=record.due_at,
        attempt=record.attempt,
        arguments=_plain(details.payload),
        payload=details.payload,
        output=None if details.output is None else _plain(details.output),
        tags=details.tags,
        attempts=details.attempts,
        log=details.log,
        record=record,
    )


def _plain(text: bytes) -> Any:
    """A payload that is no JSON is shown as it is: such a job is what a test may be about."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
