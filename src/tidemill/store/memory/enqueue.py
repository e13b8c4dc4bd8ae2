"""Enqueue: storing new jobs (clauses A2, F2, F3)."""

from __future__ import annotations

from datetime import datetime

from tidemill.core.admission import admit
from tidemill.core.digest import content_digest
from tidemill.core.instants import due_instant, expiry, first_state
from tidemill.core.repeats import repeated
from tidemill.core.transitions import By, check
from tidemill.store.enqueue import Enqueue
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import Enqueued, JobRecord, NewJob


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
        return repeated(job.id, there.record.state, there.digest, digest)
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


def _record(job: NewJob, now: datetime) -> JobRecord:
    due_at = due_instant(job, now)
    return JobRecord(
        id=job.id,
        wire_name=job.wire_name,
        queue=job.queue,
        priority=job.priority,
        state=check(None, first_state(due_at, now), By.ENQUEUE),
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
