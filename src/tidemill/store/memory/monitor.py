"""The monitor's reads (clause L2)."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from tidemill.store.cursors import cursor_after, read_cursor
from tidemill.store.memory.rows import JobRow, WorkerRow
from tidemill.store.memory.tables import Work
from tidemill.store.monitor import (
    CountJobs,
    GetEnd,
    GetJob,
    ListJobs,
    ListQueues,
    ListWorkers,
)
from tidemill.values.jobs import JobDetails, JobRecord
from tidemill.values.monitor import (
    JobEnd,
    JobFilter,
    JobPage,
    QueueCount,
    QueueRecord,
    WorkerRecord,
)
from tidemill.values.states import JobState


def get_job(work: Work, operation: GetJob) -> JobDetails | None:
    row = work.tables.jobs.get(operation.job_id)
    if row is None:
        return None
    return JobDetails(
        record=row.record,
        payload=row.payload,
        output=row.output,
        tags=row.tags,
        attempts=work.tables.attempts(operation.job_id),
        log=work.tables.lines(operation.job_id)[-work.bounds.log_lines_shown :],
    )


def get_end(work: Work, operation: GetEnd) -> JobEnd | None:
    row = work.tables.jobs.get(operation.job_id)
    return None if row is None else _end(row)


def list_jobs(work: Work, operation: ListJobs) -> JobPage:
    start = None if operation.cursor is None else (read_cursor(operation.cursor),)
    limit = min(max(operation.limit, 1), work.bounds.page_size)
    records = (work.tables.jobs[job_id].record for job_id in work.tables.every.before(start))
    found = list(islice((job for job in records if _shows(operation.where, job)), limit + 1))
    page = tuple(found[:limit])
    return JobPage(page, cursor_after(page[-1].id) if len(found) > limit else None)


def count_jobs(work: Work, _: CountJobs) -> tuple[QueueCount, ...]:
    records = (row.record for row in work.tables.jobs.values())
    counts = Counter((record.queue, record.state) for record in records)
    return tuple(QueueCount(queue, state, counts[queue, state]) for queue, state in sorted(counts))


def list_queues(work: Work, _: ListQueues) -> tuple[QueueRecord, ...]:
    active = [row.record for row in work.tables.jobs.values() if not row.record.state.terminal]
    counts = Counter((job.queue, "held" if job.held else job.state.value) for job in active)
    paused = {queue for queue, is_paused in work.tables.paused.items() if is_paused}
    return tuple(
        QueueRecord(
            queue=queue,
            paused=queue in paused,
            ready=counts[queue, "ready"],
            held=counts[queue, "held"],
            scheduled=counts[queue, "scheduled"],
            running=counts[queue, "running"],
        )
        for queue in sorted(paused | {job.queue for job in active})
    )


def list_workers(work: Work, _: ListWorkers) -> tuple[WorkerRecord, ...]:
    rows = [row for row in work.tables.workers.values() if not row.deregistered]
    rows.sort(key=lambda row: (row.started_at, row.info.id))
    return tuple(worker_record(work, row) for row in rows)


def _end(row: JobRow) -> JobEnd:
    state = row.record.state
    output = row.output if state is JobState.SUCCEEDED else None
    return JobEnd(state=state, cause=row.record.cause, output=output)


def _shows(where: JobFilter, job: JobRecord) -> bool:
    return (
        (not where.states or job.state in where.states)
        and where.queue in {None, job.queue}
        and where.wire_name in {None, job.wire_name}
    )


def worker_record(work: Work, row: WorkerRow) -> WorkerRecord:
    info = row.info
    return WorkerRecord(
        id=info.id,
        host=info.host,
        pid=info.pid,
        version=info.version,
        queues=info.queues,
        wire_names=info.wire_names,
        slots=info.slots,
        started_at=row.started_at,
        lease_expires_at=row.expires_at,
        lapsed_at=row.lapsed_at,
        live=row.live(work.now),
        running=len(work.tables.running.ids(info.id)),
    )
