"""What the tables hold: one frozen row for a job, one for a worker, one for an audited action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tidemill.core.lease import Lease
from tidemill.core.verdicts import Standing
from tidemill.values.jobs import Holder, JobRecord, NewJob
from tidemill.values.operators import ActionResult, QueueResult
from tidemill.values.tags import Tag
from tidemill.values.workers import WorkerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job. `record.worker` is set while it runs and after it succeeded, and only then.

    `settling` and `children` are the tags and the jobs of a completion that is not settled yet.
    """

    record: JobRecord
    payload: bytes
    tags: frozenset[Tag]
    digest: bytes
    output: bytes | None = None
    settling: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()

    @property
    def holder(self) -> Holder:
        record = self.record
        return Holder(record.worker, record.attempt, record.state)

    @property
    def standing(self) -> Standing:
        record = self.record
        return Standing(
            job_id=record.id,
            attempt=record.attempt,
            retry=record.retry,
            failures=record.failures,
            failures_base=record.failures_base,
            lapses=record.lapses,
            lapses_base=record.lapses_base,
            cancel_requested=record.cancel_requested,
        )

    def now_says(self, record: JobRecord) -> JobRow:
        return replace(self, record=record)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """One worker. The row stays when its lease ended, so that its id is never used again."""

    info: WorkerInfo
    started_at: datetime
    beat_lasts: timedelta
    expires_at: datetime
    lapsed_at: datetime | None = None
    deregistered: bool = False

    @property
    def lease(self) -> Lease:
        return Lease(self.expires_at, self.lapsed_at is not None, self.deregistered)

    def live(self, now: datetime) -> bool:
        return self.lease.is_live(now)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What an operator did, and what they were answered: those who ask again are told the same."""

    kind: str
    actor: str
    at: datetime
    results: tuple[ActionResult, ...] | tuple[QueueResult, ...]
