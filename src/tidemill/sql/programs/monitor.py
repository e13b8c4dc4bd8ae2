"""The monitor: reads that are never on the claim path (clause L2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from tidemill.sql.codes import STATES, UNKNOWN_STATE
from tidemill.sql.program import Program, Statement
from tidemill.sql.programs.env import Env, read_clock
from tidemill.sql.programs.notes import log_end
from tidemill.sql.reading import Reading
from tidemill.sql.rows import details, record
from tidemill.sql.worker_rows import worker_record
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
from tidemill.values.jobs import JobDetails, JobRecord
from tidemill.values.monitor import JobEnd, JobPage, QueueCount, QueueRecord, WorkerRecord
from tidemill.values.states import JobState

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
    log = yield from log_end(env, operation.job_id)
    return replace(details(env.dialect, rows[0], tags, attempts), log=log)


def get_end(operation: GetEnd, env: Env) -> Program[JobEnd | None]:
    rows = yield Statement("job_end", {"id": operation.job_id})
    if not rows:
        return None
    read = Reading(env.dialect, rows[0])
    state, cause = read.state("state"), read.text_or_none("cause")
    output = read.blob_or_none("output") if state is JobState.SUCCEEDED else None
    return JobEnd(state=state, cause=cause, output=output)


def list_jobs(operation: ListJobs, env: Env) -> Program[JobPage]:
    """One row more than the page is read, to know whether another page follows.

    A state that nobody knows counts as `UNKNOWN_STATE`.
    """
    limit = max(1, min(operation.limit, env.bounds.page_size))
    before = _AFTER_ALL if operation.cursor is None else read_cursor(operation.cursor)
    where = operation.where
    rows = yield Statement(
        "newest_jobs",
        {
            "before": before,
            "states": tuple(sorted(where.states or STATES)),
            "strays": not where.states or UNKNOWN_STATE in where.states,
            "queue": where.queue,
            "wire_name": where.wire_name,
            "limit": limit + 1,
        },
    )
    jobs = tuple(record(env.dialect, row) for row in rows[:limit])
    return JobPage(jobs, _cursor(jobs) if len(rows) > limit else None)


def _cursor(jobs: Sequence[JobRecord]) -> str | None:
    """Where the next page begins: after the last job whose id can be read, so a page goes on."""
    ids = (job.id for job in reversed(jobs) if "id" not in job.unreadable)
    last = next(ids, None)
    return None if last is None else cursor_after(last)


def count_jobs(_operation: CountJobs, env: Env) -> Program[tuple[QueueCount, ...]]:
    rows = yield Statement("count_jobs")
    counts: Counter[tuple[str, JobState]] = Counter()
    for row in rows:
        read = Reading(env.dialect, row)
        counts[read.text("queue"), read.state("state")] += row["n"]
    return tuple(QueueCount(*pair, counts[pair]) for pair in sorted(counts))


def list_queues(_operation: ListQueues, env: Env) -> Program[tuple[QueueRecord, ...]]:
    """Each count is read from the index of its kind, so ended jobs cost nothing."""
    found: dict[str, dict[str, int]] = {}
    for statement, counted in _QUEUE_COUNTS.items():
        rows = yield Statement(statement)
        for row in rows:
            queue = Reading(env.dialect, row).text("queue")
            found.setdefault(queue, {})[counted] = row["n"]
    rows = yield Statement("paused_queues")
    paused = {Reading(env.dialect, row).text("name") for row in rows}
    return tuple(
        QueueRecord(queue=queue, paused=queue in paused, **found.get(queue, {}))
        for queue in sorted(paused | found.keys())
    )


def list_workers(_operation: ListWorkers, env: Env) -> Program[tuple[WorkerRecord, ...]]:
    now = yield from read_clock(env)
    rows = yield Statement("workers")
    return tuple(worker_record(env.dialect, row, now) for row in rows)
