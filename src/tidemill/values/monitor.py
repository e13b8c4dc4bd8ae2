"""What the monitor's reads take and give."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemill.values.ids import WorkerId
from tidemill.values.jobs import JobRecord
from tidemill.values.states import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs a list shows; every absent field matches all."""

    states: frozenset[JobState] = frozenset()
    queue: str | None = None
    wire_name: str | None = None


EVERY_JOB = JobFilter()


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page, newest first, and the opaque cursor of the next (None at the end)."""

    jobs: tuple[JobRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class QueueCount:
    """How many jobs of a queue are in a state."""

    queue: str
    state: JobState
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """A queue as lists show it: whether it is paused, and how many jobs are on their way.

    `ready` are those that a claim would look at; `held` are ready too, and set aside. Terminal
    jobs are not counted: `CountJobs` does that, at the price of a scan.
    """

    queue: str
    paused: bool
    ready: int = 0
    held: int = 0
    scheduled: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a job stands, for someone who waits for its result."""

    state: JobState
    cause: str | None
    output: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A registered worker as lists show it.

    `running` counts its attempts; `wire_names` is None for a worker that claims every name.
    """

    id: WorkerId
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    wire_names: frozenset[str] | None
    slots: int
    started_at: datetime
    lease_expires_at: datetime
    lapsed_at: datetime | None
    live: bool
    running: int
