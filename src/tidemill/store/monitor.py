"""The monitor: reads that are never on the claim path (clause L2)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.store.contract import Operation
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails
from tidemill.values.monitor import (
    EVERY_JOB,
    JobEnd,
    JobFilter,
    JobPage,
    QueueCount,
    QueueRecord,
    WorkerRecord,
)


@dataclass(frozen=True, slots=True)
class GetJob(Operation[JobDetails | None]):
    """One job, whole; None if there is none."""

    job_id: JobId


@dataclass(frozen=True, slots=True)
class GetEnd(Operation[JobEnd | None]):
    """How a job stands; the output only once it has succeeded. None if there is no such job."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJobs(Operation[JobPage]):
    """One page of jobs, newest id first, stable while rows move.

    `limit` is clamped to the store's page size.

    Raises:
        InvalidValue: the cursor was not made by this store.
    """

    where: JobFilter = EVERY_JOB
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class CountJobs(Operation[tuple[QueueCount, ...]]):
    """How many jobs each queue has in each state; absent pairs are zero."""


@dataclass(frozen=True, slots=True)
class ListWorkers(Operation[tuple[WorkerRecord, ...]]):
    """The registered workers, oldest first."""


@dataclass(frozen=True, slots=True)
class ListQueues(Operation[tuple[QueueRecord, ...]]):
    """The queues that are paused or hold a job that has not ended, by name.

    It costs as much as there are jobs on their way, and nothing for those that have ended.
    """
