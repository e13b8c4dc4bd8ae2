"""Leaving jobs to be stored with an attempt's success (clauses D2, D3, F6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from tidemill.bound import BoundJob, require_bound
from tidemill.client import JobRef
from tidemill.core.admission import admit
from tidemill.errors import ConfigurationError
from tidemill.shell.ambient import Ambient
from tidemill.shell.leaving import Leaving
from tidemill.store.contract import Store
from tidemill.values.bounds import Bounds
from tidemill.values.jobs import Claimed, Enqueued
from tidemill.values.states import JobState

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Leaver:
    """Leaves the jobs of one attempt.

    Args:
        job: the attempt's job, as it was claimed.
        leaving: how its worker hears of them.
        store: where the job is stored; None where this process has none.
        bounds: what the jobs are held against.
    """

    job: Claimed
    leaving: Leaving
    store: Store | None
    bounds: Bounds

    def leave(self, bound: BoundJob[R]) -> JobRef[R]:
        """Leave one more job, and answer the reference to what it will be."""
        require_bound(bound, "enqueue")
        self._require_own(bound)
        child = bound.request(Ambient(self.job.tenant, self.job.trace_context))
        admit(child, self.bounds)
        self.leaving.add(child, self.bounds.children)
        return bound.ref(Enqueued(child.id, JobState.READY))

    def _require_own(self, bound: BoundJob[R]) -> None:
        if self.store is None or bound.client.is_of(self.store):
            return
        message = (
            f"Job {bound.definition.wire_name!r} belongs to another app than this attempt's, whose "
            "success is stored elsewhere; nothing was enqueued. Enqueue it by itself: "
            "await handle.enqueue(…)."
        )
        raise ConfigurationError(message)
