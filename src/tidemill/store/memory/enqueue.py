"""Enqueue: storing new jobs (clauses A2, F2, F3)."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemill.core.admission import admit, content_digest
from tidemill.core.instants import after, expiry
from tidemill.core.transitions import By, check
from tidemill.errors import JobIdConflict
from tidemill.store.enqueue import Enqueue
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import Enqueued, JobRecord, NewJob
from tidemill.values.states import JobState


def enqueue(work: Work, operation: Enqueue) -> tuple[Enqueued, ...]:
    for job in operation.jobs:
        admit(job, work.bounds)
    with work.tables.transaction():
        return tuple(store_job(work, job) for job in operation.jobs)


def store_job(work: Work, job: NewJob) -> Enqueued:
    """Store an admitted job, unless it is there already or its key is held."""
    tables = work.tables
    digest = content_digest(job)
    if there := tables.jobs.get(job.id):
        return _repeated(there, digest)
    if holder := key_holder(work, job.tenant, job.idempotency_key):
        return Enqueued(holder.record.id, holder.record.state, deduplicated=True)
    row = JobRow(record=_record(job, work.now), payload=job.payload, tags=job.tags, digest=digest)
    tables.save_job(row)
    return Enqueued(job.id, row.record.state)


def key_holder(work: Work, tenant: str | None, key: str | None) -> JobRow | None:
    """The active job that carries the key, if there is a key and such a job."""
    if key is None:
        return None
    holder: JobId | None = work.tables.keyed.first((tenant, key))
    return None if holder is None else work.tables.jobs[holder]


def _repeated(there: JobRow, digest: bytes) -> Enqueued:
    record = there.record
    if there.digest != digest:
        message = (
            f"Job id {record.id} is taken by a job {record.wire_name!r} with other content; "
            "nothing was written. Make a fresh id for every new request."
        )
        raise JobIdConflict(message)
    return Enqueued(record.id, record.state, repeated=True)


def _record(job: NewJob, now: datetime) -> JobRecord:
    due_at = _due_at(job, now)
    state = JobState.READY if due_at <= now else JobState.SCHEDULED
    return JobRecord(
        id=job.id,
        wire_name=job.wire_name,
        queue=job.queue,
        priority=job.priority,
        state=check(None, state, By.ENQUEUE),
        held=None,
        due_at=due_at,
        attempt=Attempt(0),
        failures=0,
        failures_base=0,
        lapses=0,
        lapses_base=0,
        worker=None,
        started_at=None,
        finished_at=None,
        cause=None,
        cancel_requested=None,
        retry=job.retry,
        timeout=job.timeout,
        not_after=expiry(job, now),
        idempotency_key=job.idempotency_key,
        tenant=job.tenant,
        created_at=now,
        rerun_of=job.rerun_of,
        trace_context=job.trace_context,
    )


def _due_at(job: NewJob, now: datetime) -> datetime:
    if job.due_at is not None:
        return job.due_at.astimezone(UTC)
    return now if job.delay is None else after(now, job.delay)
