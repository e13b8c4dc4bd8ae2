"""A job as it is asked for, as it is claimed, and as it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.notes import JobLine, JobProgress
from tidemill.values.outcomes import ErrorInfo, Verdict
from tidemill.values.retry import DEFAULT_RETRY, Retry
from tidemill.values.states import Held, JobState
from tidemill.values.tags import Tag

DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 0
PRIORITY_RANGE = range(-32768, 32768)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A request to store one job (clause F1).

    Attributes:
        id: made by the client, so that the same request can be sent twice.
        payload: one JSON object keyed by parameter name, encoded.
        delay: wait this long on the store's clock; excludes `due_at`.
        due_at: not before this instant (UTC); both absent means now.
        not_after: never started at or after this instant: then `cancelled` with cause `expired`.
        expires: the same, so long after it was stored, on the store's clock; excludes `not_after`.
        timeout: how long one attempt may run.
        parents: jobs it would wait for; refused in this version.
    """

    id: JobId
    wire_name: str
    payload: bytes = b"{}"
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delay: timedelta | None = None
    due_at: datetime | None = None
    not_after: datetime | None = None
    expires: timedelta | None = None
    timeout: timedelta | None = None
    retry: Retry = DEFAULT_RETRY
    idempotency_key: str | None = None
    tenant: str | None = None
    tags: frozenset[Tag] = frozenset()
    parents: tuple[JobId, ...] = ()
    trace_context: str | None = None
    rerun_of: JobId | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of one requested job.

    `job_id` is the id of the job that stands for the request: the requested one, or the active job
    that already carries its idempotency key (`deduplicated` is then true), or the same job when
    the same request arrived before (`repeated`).
    """

    job_id: JobId
    state: JobState
    deduplicated: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Everything a handler's attempt needs (clause C3)."""

    id: JobId
    attempt: Attempt
    worker: WorkerId
    wire_name: str
    payload: bytes
    queue: str
    priority: int
    created_at: datetime
    due_at: datetime
    started_at: datetime
    timeout: timedelta | None
    retry: Retry
    tenant: str | None
    trace_context: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as lists show it: everything but its payload and output.

    `unsettled` says that it was completed in its handler's transaction, and that what follows from
    it is not done yet (clause D8). `unreadable` names the columns of its row that cannot be read,
    since something else has changed them or the file is damaged; what the record says of them is a
    stand-in.
    """

    id: JobId
    wire_name: str
    queue: str
    priority: int
    state: JobState
    held: Held | None
    due_at: datetime
    attempt: Attempt
    failures: int
    failures_base: int
    lapses: int
    lapses_base: int
    worker: WorkerId | None
    started_at: datetime | None
    finished_at: datetime | None
    cause: str | None
    cancel_requested: str | None
    retry: Retry
    timeout: timedelta | None
    not_after: datetime | None
    idempotency_key: str | None
    tenant: str | None
    created_at: datetime
    rerun_of: JobId | None
    trace_context: str | None = None
    unsettled: bool = False
    progress: JobProgress | None = None
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """How one attempt ended, kept for every end that is not a success (clause E5).

    A stale report leaves a record too: `stale` is true, `verdict` is what it wanted to record,
    `worker` and `attempt` are the reporter's, `holder` is who held the job then. `unreadable` names
    the columns of its row that cannot be read; what stands for them is made up.
    """

    job_id: JobId
    attempt: Attempt
    worker: WorkerId
    verdict: Verdict
    error: ErrorInfo | None
    started_at: datetime | None
    ended_at: datetime
    stale: bool = False
    holder: Holder | None = None
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a job: the worker and attempt that the fence compares, and the state it is in."""

    worker: WorkerId | None
    attempt: Attempt
    state: JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """One job, whole: the record with payload, output, tags and attempts (oldest first).

    `log` are the last lines of its log, oldest first; `ReadLog` reads all of them. What is asked
    for most can be read here as in the record.
    """

    record: JobRecord
    payload: bytes
    output: bytes | None
    tags: frozenset[Tag] = field(default_factory=frozenset[Tag])
    attempts: tuple[AttemptRecord, ...] = ()
    log: tuple[JobLine, ...] = ()

    def __repr__(self) -> str:
        why = f" ({self.cause})" if self.cause else ""
        return f"<JobDetails {self.id} {self.wire_name}: {self.state}{why}, attempt {self.attempt}>"

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self.record.id

    @property
    def wire_name(self) -> str:
        """The name it was stored under."""
        return self.record.wire_name

    @property
    def queue(self) -> str:
        """The queue it is in."""
        return self.record.queue

    @property
    def state(self) -> JobState:
        """Where it stands."""
        return self.record.state

    @property
    def cause(self) -> str | None:
        """Why it is in its terminal state, where the state alone does not say."""
        return self.record.cause

    @property
    def attempt(self) -> Attempt:
        """The number of its latest attempt; 0 before the first."""
        return self.record.attempt

    @property
    def progress(self) -> JobProgress | None:
        """The latest word of progress; None before the first."""
        return self.record.progress

    @property
    def due_at(self) -> datetime:
        """When it is or was due (UTC)."""
        return self.record.due_at

    @property
    def finished_at(self) -> datetime | None:
        """When it ended (UTC); None before."""
        return self.record.finished_at
