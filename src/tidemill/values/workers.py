"""A worker as it presents itself, and what its heartbeat brings back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidemill.values.ids import Attempt, JobId, WorkerId


class Pair(NamedTuple):
    """One attempt of one job: what a worker holds."""

    job_id: JobId
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """One incarnation of a claiming process.

    `wire_names` are the names it knows; None is every name, for a worker that quarantines what it
    has no handler for.
    """

    id: WorkerId
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    wire_names: frozenset[str] | None
    slots: int


@dataclass(frozen=True, slots=True)
class RunningPair:
    """An attempt that the store lists as running under a worker."""

    job_id: JobId
    attempt: Attempt
    cancel_requested: str | None = None

    @property
    def pair(self) -> Pair:
        """The (job, attempt) that the node compares with what it holds."""
        return Pair(self.job_id, self.attempt)
