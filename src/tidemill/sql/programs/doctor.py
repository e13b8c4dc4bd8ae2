"""The doctor's reads: bounded, and never on the claim path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.migrations import migrations, read_versions
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.env import Env, read_clock
from tidemill.sql.reading import Reading
from tidemill.sql.worker_rows import worker_record
from tidemill.store.doctor import (
    ExamineBacklog,
    ExamineDeadLetters,
    ExamineNames,
    ExamineStuck,
    ExamineWorkers,
    ReadClock,
)
from tidemill.values.doctor import (
    Backlog,
    DatabaseHealth,
    DeadLetter,
    DeadLetters,
    QueueHealth,
    SchemaHealth,
    SessionHealth,
    StuckJob,
    StuckJobs,
    StuckWork,
    TableHealth,
    Unwritable,
    Waiting,
    WaitingName,
    WorkerHealth,
    Workforce,
)
from tidemill.values.ids import Attempt, JobId, WorkerId

OPEN_LONG: Final = timedelta(seconds=10)
"""A transaction that has been open for less is nobody's trouble."""
_SHOWN: Final = 20


def clock(_operation: ReadClock, env: Env) -> Program[datetime]:
    now = yield from read_clock(env)
    return now


def examine_workers(operation: ExamineWorkers, env: Env) -> Program[Workforce]:
    now = yield from read_clock(env)
    since = now - operation.ended_within
    rows = yield Statement("examined_workers", {"since": since, "limit": operation.limit + 1})
    found = tuple(
        WorkerHealth(worker_record(env.dialect, row, now), _lease(env.dialect, row))
        for row in rows[: operation.limit]
    )
    return Workforce(now, found, more=len(rows) > operation.limit)


def _lease(dialect: Dialect, row: Row) -> timedelta:
    return Reading(dialect, row).duration_or_none("lease") or timedelta(0)


def examine_backlog(operation: ExamineBacklog, env: Env) -> Program[Backlog]:
    now = yield from read_clock(env)
    limit = operation.limit + 1
    ready = yield Statement("backlog_ready", {"limit": limit})
    due = yield Statement("backlog_due", {"now": now, "limit": limit})
    rows = yield Statement("paused_queues")
    paused = {row["name"] for row in rows}
    counted = [{row["queue"]: row for row in found} for found in (ready, due)]
    queues = [
        _queue(env.dialect, queue, counted, paused=queue in paused)
        for queue in {*counted[0], *counted[1]}
    ]
    queues.sort(key=lambda queue: (-queue.ready - queue.due, queue.queue))
    return Backlog(now, tuple(queues[: operation.limit]), more=len(queues) > operation.limit)


def _queue(
    dialect: Dialect, queue: str, counted: Sequence[Mapping[str, Row]], *, paused: bool
) -> QueueHealth:
    ready, due = (rows.get(queue) for rows in counted)
    return QueueHealth(
        queue=queue,
        paused=paused,
        ready=0 if ready is None else ready["n"],
        due=0 if due is None else due["n"],
        oldest_due_at=min(
            Reading(dialect, row).instant("oldest") for row in (ready, due) if row is not None
        ),
    )


def examine_stuck(operation: ExamineStuck, env: Env) -> Program[StuckWork]:
    now = yield from read_clock(env)
    before, limit = now - operation.margin, operation.limit
    abandoned = yield Statement("stuck_abandoned", {"now": now, "limit": limit})
    overdue = yield Statement("stuck_overdue", {"now": now, "before": before, "limit": limit})
    unsettled = yield Statement("stuck_unsettled", {"before": before, "limit": limit})
    return StuckWork(
        now=now,
        abandoned=_stuck(env.dialect, abandoned),
        overdue=_stuck(env.dialect, overdue),
        unsettled=_stuck(env.dialect, unsettled),
    )


def _stuck(dialect: Dialect, rows: Sequence[Row]) -> StuckJobs:
    jobs = tuple(_stuck_job(Reading(dialect, row)) for row in rows)
    return StuckJobs(jobs, rows[0]["total"] if rows else 0)


def _stuck_job(read: Reading) -> StuckJob:
    worker = read.uuid_or_none("worker_id")
    return StuckJob(
        id=JobId(read.uuid("id")),
        wire_name=read.text("wire_name"),
        queue=read.text("queue"),
        attempt=Attempt(read.count("attempt")),
        worker=None if worker is None else WorkerId(worker),
        since=read.instant_or_none("since"),
    )


def examine_names(operation: ExamineNames, env: Env) -> Program[tuple[WaitingName, ...]]:
    bounds = {"sample": operation.sample, "limit": operation.limit}
    rows = yield Statement("waiting_names", bounds)
    return tuple(_waiting_name(Reading(env.dialect, row), row) for row in rows)


def _waiting_name(read: Reading, row: Row) -> WaitingName:
    return WaitingName(
        read.text("queue"), read.text("wire_name"), Waiting(row["waiting"]), row["n"]
    )


def examine_dead_letters(operation: ExamineDeadLetters, env: Env) -> Program[DeadLetters]:
    now = yield from read_clock(env)
    bounds = {"newest": operation.newest, "limit": operation.limit}
    rows = yield Statement("dead_letters", bounds)
    groups = tuple(_dead_letter(Reading(env.dialect, row), row) for row in rows)
    return DeadLetters(
        now,
        groups,
        kinds=rows[0]["kinds"] if rows else 0,
        dead=int(rows[0]["dead"]) if rows else 0,
        quarantined=int(rows[0]["quarantined"]) if rows else 0,
        last_at=Reading(env.dialect, rows[0]).instant_or_none("last_at") if rows else None,
        newest=operation.newest,
    )


def _dead_letter(read: Reading, row: Row) -> DeadLetter:
    return DeadLetter(
        read.state("state"),
        read.text("wire_name"),
        read.text_or_none("cause"),
        row["n"],
        read.instant_or_none("newest"),
    )


def examine_database(env: Env, product: str, place: str) -> Program[DatabaseHealth]:
    """What the database says of itself. It needs no schema of ours."""
    now = yield from read_clock(env)
    settings = yield Statement("database_settings")
    version, min_compatible = yield from read_versions()
    tables = yield Statement("database_tables", {"limit": _SHOWN})
    sessions = yield Statement("database_sessions", {"longer": OPEN_LONG, "limit": _SHOWN})
    notes = (yield Statement("database_notes")) if version else ()
    known = migrations(env.dialect.name)[-1].version
    return DatabaseHealth(
        product=product,
        place=place,
        now=now,
        schema=SchemaHealth(version, min_compatible, known),
        settings={row["name"]: str(row["value"]) for row in settings},
        tables=tuple(_table(env.dialect, row) for row in tables),
        sessions=tuple(_session(env.dialect, row) for row in sessions),
        unwritable=_unwritable(env.dialect, notes),
    )


def _table(dialect: Dialect, row: Row) -> TableHealth:
    return TableHealth(
        name=row["name"],
        live=row["live"],
        dead=row["dead"],
        size=row["size"],
        vacuumed_at=Reading(dialect, row).instant_or_none("vacuumed_at"),
    )


def _session(dialect: Dialect, row: Row) -> SessionHealth:
    return SessionHealth(
        pid=row["pid"],
        application=row["application"],
        user=row["username"],
        state=row["state"],
        open_for=dialect.duration(row["open_for"]),
        idle_for=Reading(dialect, row).duration_or_none("idle_for"),
        holds=row["holds"],
        blocks=row["blocks"],
    )


def _unwritable(dialect: Dialect, notes: Sequence[Row]) -> Unwritable | None:
    said = {row["name"]: row["value"] for row in notes}
    if "unwritable_until" not in said:
        return None
    waited = dialect.duration(said.get("unwritable_for", 0))
    return Unwritable(dialect.instant(said["unwritable_until"]), waited)
