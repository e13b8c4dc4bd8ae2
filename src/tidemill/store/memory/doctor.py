"""The doctor's reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from tidemill.store.doctor import (
    ExamineBacklog,
    ExamineDeadLetters,
    ExamineNames,
    ExamineStuck,
    ExamineWorkers,
    ReadClock,
)
from tidemill.store.memory.indexes import Index
from tidemill.store.memory.monitor import worker_record
from tidemill.store.memory.rows import WorkerRow
from tidemill.store.memory.tables import Work
from tidemill.values.doctor import (
    Backlog,
    DeadLetter,
    DeadLetters,
    QueueHealth,
    StuckJob,
    StuckJobs,
    StuckWork,
    Waiting,
    WaitingName,
    WorkerHealth,
    Workforce,
)
from tidemill.values.jobs import JobRecord
from tidemill.values.states import JobState

_Since = tuple[JobRecord, datetime | None]


def read_clock(work: Work, _: ReadClock) -> datetime:
    return work.now


def examine_workers(work: Work, operation: ExamineWorkers) -> Workforce:
    since = work.now - operation.ended_within
    rows = [
        row
        for row in work.tables.workers.values()
        if not row.deregistered and (row.lapsed_at is None or row.lapsed_at > since)
    ]
    rows.sort(key=lambda row: row.info.id)
    rows.sort(key=lambda row: row.started_at, reverse=True)
    rows.sort(key=lambda row: row.lapsed_at is not None)
    found = tuple(
        WorkerHealth(worker_record(work, row), row.beat_lasts) for row in rows[: operation.limit]
    )
    return Workforce(work.now, found, more=len(rows) > operation.limit)


def examine_backlog(work: Work, operation: ExamineBacklog) -> Backlog:
    ready = _by_queue(work, work.tables.ready)
    due = {
        queue: [job for job in jobs if job.due_at <= work.now]
        for queue, jobs in _by_queue(work, work.tables.scheduled).items()
    }
    found = [
        _queue(work, queue, ready.get(queue, []), due.get(queue, []))
        for queue in {*ready, *due}
        if ready.get(queue) or due.get(queue)
    ]
    found.sort(key=lambda queue: (-queue.ready - queue.due, queue.queue))
    return Backlog(work.now, tuple(found[: operation.limit]), more=len(found) > operation.limit)


def _queue(work: Work, queue: str, ready: list[JobRecord], due: list[JobRecord]) -> QueueHealth:
    return QueueHealth(
        queue=queue,
        paused=work.tables.paused.get(queue, False),
        ready=len(ready),
        due=len(due),
        oldest_due_at=min(job.due_at for job in (*ready, *due)),
    )


def _by_queue(work: Work, index: Index) -> dict[str, list[JobRecord]]:
    return {queue: _records(work, index.ids(queue)) for queue in index.groups()}


def _records(work: Work, ids: Iterable[Any]) -> list[JobRecord]:
    return [work.tables.jobs[job_id].record for job_id in ids]


def examine_stuck(work: Work, operation: ExamineStuck) -> StuckWork:
    before = work.now - operation.margin
    workers = work.tables.workers
    abandoned: list[_Since] = []
    overdue: list[_Since] = []
    for worker in work.tables.running.groups():
        row = workers.get(worker)
        for job in _records(work, work.tables.running.ids(worker)):
            if row is None:
                abandoned.append((job, None))
            elif row.beat_lasts <= work.now - row.expires_at:
                abandoned.append((job, row.expires_at))
            elif _is_overdue(work, row, job, before):
                overdue.append((job, _deadline(job)))
    unsettled: list[_Since] = [
        (job, job.finished_at)
        for job in _records(work, work.tables.unsettled.ids())
        if job.finished_at is not None and job.finished_at <= before
    ]
    limit = operation.limit
    return StuckWork(
        now=work.now,
        abandoned=_first(abandoned, limit),
        overdue=_first(overdue, limit),
        unsettled=_first(unsettled, limit),
    )


def _is_overdue(work: Work, worker: WorkerRow, job: JobRecord, before: datetime) -> bool:
    if job.timeout is None or job.started_at is None or not worker.live(work.now):
        return False
    return job.timeout <= before - job.started_at


def _deadline(job: JobRecord) -> datetime | None:
    if job.timeout is None or job.started_at is None:
        return None
    return job.started_at + job.timeout


def _first(found: list[_Since], limit: int) -> StuckJobs:
    found.sort(key=lambda pair: pair[0].id)
    return StuckJobs(tuple(_stuck(job, since) for job, since in found[:limit]), len(found))


def _stuck(job: JobRecord, since: datetime | None) -> StuckJob:
    return StuckJob(
        id=job.id,
        wire_name=job.wire_name,
        queue=job.queue,
        attempt=job.attempt,
        worker=job.worker,
        since=since,
    )


def examine_names(work: Work, operation: ExamineNames) -> tuple[WaitingName, ...]:
    tables = work.tables
    counts: Counter[tuple[str, str, Waiting]] = Counter()
    for waiting, index in (
        (Waiting.READY, tables.ready),
        (Waiting.HELD, tables.held),
        (Waiting.SCHEDULED, tables.scheduled),
    ):
        ids = (job_id for group in index.groups() for job_id in index.ids(group))
        for job in _records(work, islice(ids, operation.sample)):
            counts[job.queue, job.wire_name, waiting] += 1
    found = [WaitingName(*kind, count) for kind, count in counts.items()]
    found.sort(key=lambda name: (-name.count, name.queue, name.wire_name, name.waiting))
    return tuple(found[: operation.limit])


def examine_dead_letters(work: Work, operation: ExamineDeadLetters) -> DeadLetters:
    groups: dict[tuple[JobState, str, str | None], list[JobRecord]] = defaultdict(list)
    newest = islice(work.tables.every.before(None), operation.newest)
    for job in _records(work, newest):
        if job.state in {JobState.DEAD, JobState.QUARANTINED}:
            groups[job.state, job.wire_name, job.cause].append(job)
    found = [_letter(*kind, jobs) for kind, jobs in groups.items()]
    found.sort(key=lambda each: (-each.count, each.state, each.wire_name, each.cause or ""))
    counts = {
        state: sum(each.count for each in found if each.state is state)
        for state in (JobState.DEAD, JobState.QUARANTINED)
    }
    return DeadLetters(
        work.now,
        tuple(found[: operation.limit]),
        kinds=len(found),
        last_at=max((each.newest_at for each in found if each.newest_at), default=None),
        dead=counts[JobState.DEAD],
        quarantined=counts[JobState.QUARANTINED],
        newest=operation.newest,
    )


def _letter(
    state: JobState, wire_name: str, cause: str | None, jobs: list[JobRecord]
) -> DeadLetter:
    ends = [job.finished_at for job in jobs if job.finished_at is not None]
    return DeadLetter(state, wire_name, cause, len(jobs), max(ends, default=None))
