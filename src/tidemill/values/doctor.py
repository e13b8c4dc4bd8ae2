"""What a doctor looks at, and what it finds: facts of a store, and sentences about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.monitor import WorkerRecord
from tidemill.values.states import JobState


class Result(StrEnum):
    """How a check ended, from good to bad."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, in a sentence, and what to do about it; empty if nothing is to do."""

    check: str
    result: Result
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A worker that has not deregistered, and how long each of its heartbeats lasts."""

    record: WorkerRecord
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Workforce:
    """The workers whose lease has not ended, or not long ago; `more` says that there are others."""

    now: datetime
    workers: tuple[WorkerHealth, ...]
    more: bool

    @property
    def live(self) -> list[WorkerRecord]:
        """Those whose lease lives."""
        return [each.record for each in self.workers if each.record.live]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHealth:
    """A queue with work that could run at once.

    Attributes:
        ready: jobs that a claim would look at.
        due: scheduled jobs whose time has come.
        oldest_due_at: since when the longest waiting of both could have run.
    """

    queue: str
    paused: bool
    ready: int
    due: int
    oldest_due_at: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """The queues with the most work that could run; `more` says that there are others."""

    now: datetime
    queues: tuple[QueueHealth, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckJob:
    """A running job that should have ended, and since when; None if nothing tells."""

    id: JobId
    wire_name: str
    queue: str
    attempt: Attempt
    worker: WorkerId | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class StuckJobs:
    """The first of them, and how many there are."""

    jobs: tuple[StuckJob, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckWork:
    """What has not ended although it should have.

    Attributes:
        now: the store's time.
        abandoned: running under a worker that is not there, or whose lease ended more than a lease
            ago: a sweep should have found them.
        overdue: running under a live worker well beyond their timeout.
        unsettled: completed in their handler's transaction, with something left to do for long.
    """

    now: datetime
    abandoned: StuckJobs
    overdue: StuckJobs
    unsettled: StuckJobs


class Waiting(StrEnum):
    """How a job waits."""

    READY = "ready"
    HELD = "held"
    SCHEDULED = "scheduled"


@dataclass(frozen=True, slots=True)
class WaitingName:
    """How many jobs of a wire name wait in a queue, among those that were looked at."""

    queue: str
    wire_name: str
    waiting: Waiting
    count: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """How many jobs of a wire name ended dead or quarantined for one cause, and when the last."""

    state: JobState
    wire_name: str
    cause: str | None
    count: int
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Those among the `newest` jobs: the largest groups of them, and what holds for all of them.

    Attributes:
        kinds: how many groups there are.
        last_at: when the last of any group ended; None if there is none.
    """

    now: datetime
    groups: tuple[DeadLetter, ...]
    kinds: int
    dead: int
    quarantined: int
    last_at: datetime | None
    newest: int


@dataclass(frozen=True, slots=True)
class SchemaHealth:
    """Versions of the schema: what is there (0: nothing), what it asks for, and what we know."""

    version: int
    min_compatible: int
    known: int

    @property
    def fits(self) -> bool:
        """Whether this version of Tidemill can work with what is there."""
        return self.version >= self.known >= self.min_compatible


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """A table of ours: rows that live and that wait to be cleaned away, and its size in bytes."""

    name: str
    live: int
    dead: int
    size: int
    vacuumed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHealth:
    """Somebody's transaction that has been open for a while.

    Attributes:
        pid: of the server's process; on SQLite of the process that writes. None for a prepared
            transaction, which belongs to no process.
        application: what it calls itself.
        user: whose it is.
        state: what it does.
        open_for: how long at least.
        idle_for: how long it has done nothing; None while it works.
        holds: locks on our tables that it has, in words; empty if it only reads or touches none.
        blocks: how many sessions wait for it, as far as can be seen.
    """

    pid: int | None
    application: str
    user: str
    state: str
    open_for: timedelta
    idle_for: timedelta | None = None
    holds: str = ""
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Unwritable:
    """The last time that somebody waited long for the write lock: until when, and how long."""

    until: datetime
    waited: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseHealth:
    """What a database says of itself, whatever its schema.

    `settings` are its own words for its own settings, and what the adapter measured beside it.
    """

    product: str
    place: str
    now: datetime
    schema: SchemaHealth
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    tables: tuple[TableHealth, ...] = ()
    sessions: tuple[SessionHealth, ...] = ()
    unwritable: Unwritable | None = None
