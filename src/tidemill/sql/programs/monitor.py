"""The monitor: reads that are never on the claim path (clause L2)."""

from __future__ import annotations

from uuid import UUID

from tidemill.sql.codes import STATES, state_of
from tidemill.sql.program import Program, Statement
from tidemill.sql.programs.env import Env, read_clock
from tidemill.sql.rows import attempt_record, record, worker_record
from tidemill.store.cursors import cursor_after, read_cursor
from tidemill.store.monitor import (
    CountJobs,
    GetEnd,
    GetJob,
    ListJobs,
    ListQueues,
    ListWorkers,
)
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails
from tidemill.values.monitor import JobEnd, JobPage, QueueCount, QueueRecord, WorkerRecord
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

_QUEUE_COUNTS = {
    "count_ready": "ready",
    "count_held": "held",
    "count_scheduled": "scheduled",
    "count_running": "running",
}
_AFTER_ALL = JobId(UUID(int=(1 << 128) - 1))


def get_job(operation: GetJob, env: Env) -> Program[JobDetails | None]:
    named = {"id": operation.job_id}
    rows = yield Statement("job", named)
    if not rows:
        return None
    tags = yield Statement("job_tags", named)
    attempts = yield Statement("job_attempts", named)
    return JobDetails(
        record=record(env.dialect, rows[0]),
        payload=rows[0]["payload"],
        output=rows[0]["output"],
        tags=frozenset(Tag(row["tag"], row["value"]) for row in tags),
        attempts=tuple(attempt_record(env.dialect, row) for row in attempts),
    )


def get_end(operation: GetEnd, _env: Env) -> Program[JobEnd | None]:
    rows = yield Statement("job_end", {"id": operation.job_id})
    if not rows:
        return None
    state = state_of(rows[0]["state"])
    output = rows[0]["output"] if state is JobState.SUCCEEDED else None
    return JobEnd(state=state, cause=rows[0]["cause"], output=output)


def list_jobs(operation: ListJobs, env: Env) -> Program[JobPage]:
    """One row more than the page is read, to know whether another page follows."""
    limit = max(1, min(operation.limit, env.bounds.page_size))
    before = _AFTER_ALL if operation.cursor is None else read_cursor(operation.cursor)
    where = operation.where
    rows = yield Statement(
        "newest_jobs",
        {
            "before": before,
            "states": tuple(sorted(where.states or STATES)),
            "queue": where.queue,
            "wire_name": where.wire_name,
            "limit": limit + 1,
        },
    )
    jobs = tuple(record(env.dialect, row) for row in rows[:limit])
    return JobPage(jobs, cursor_after(jobs[-1].id) if len(rows) > limit else None)


def count_jobs(_operation: CountJobs, _env: Env) -> Program[tuple[QueueCount, ...]]:
    rows = yield Statement("count_jobs")
    return tuple(QueueCount(row["queue"], state_of(row["state"]), row["n"]) for row in rows)


def list_queues(_operation: ListQueues, _env: Env) -> Program[tuple[QueueRecord, ...]]:
    """Each count is read from the index of its kind, so ended jobs cost nothing."""
    found: dict[str, dict[str, int]] = {}
    for statement, counted in _QUEUE_COUNTS.items():
        rows = yield Statement(statement)
        for row in rows:
            found.setdefault(row["queue"], {})[counted] = row["n"]
    rows = yield Statement("paused_queues")
    paused = {row["name"] for row in rows}
    return tuple(
        QueueRecord(queue=queue, paused=queue in paused, **found.get(queue, {}))
        for queue in sorted(paused | found.keys())
    )


def list_workers(_operation: ListWorkers, env: Env) -> Program[tuple[WorkerRecord, ...]]:
    now = yield from read_clock(env)
    rows = yield Statement("workers")
    return tuple(worker_record(env.dialect, row, now) for row in rows)
