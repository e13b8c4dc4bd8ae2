"""From rows to values: what each kind of row says, read through a dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from tidemill.core.lease import Lease
from tidemill.core.verdicts import Standing
from tidemill.sql.codes import held_of, state_of, verdict_of
from tidemill.sql.dialects.dialect import Dialect, duration_or_none, instant_or_none
from tidemill.sql.program import Row
from tidemill.sql.retry import decode_retry
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import AttemptRecord, Claimed, Holder, JobRecord
from tidemill.values.monitor import WorkerRecord
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.workers import RunningPair, WorkerInfo

NO_TENANT = ""
"""What stands for the job without a tenant (clause F3)."""


def job_id(dialect: Dialect, row: Row) -> JobId:
    return JobId(dialect.uuid(row["id"]))


def worker_id(dialect: Dialect, row: Row) -> WorkerId | None:
    stored = row["worker_id"]
    return None if stored is None else WorkerId(dialect.uuid(stored))


def holder(dialect: Dialect, row: Row) -> Holder:
    return Holder(worker_id(dialect, row), Attempt(row["attempt"]), state_of(row["state"]))


def standing(dialect: Dialect, row: Row) -> Standing:
    return Standing(
        job_id=job_id(dialect, row),
        attempt=Attempt(row["attempt"]),
        retry=decode_retry(row["retry"]),
        failures=row["failures"],
        failures_base=row["failures_base"],
        lapses=row["lapses"],
        lapses_base=row["lapses_base"],
        cancel_requested=row["cancel_requested"],
    )


def claimed(dialect: Dialect, row: Row, worker: WorkerId, now: datetime) -> Claimed:
    """A ready row as it is handed to a worker: the attempt is the one that starts."""
    return Claimed(
        id=job_id(dialect, row),
        attempt=Attempt(row["attempt"] + 1),
        worker=worker,
        wire_name=row["wire_name"],
        payload=row["payload"],
        queue=row["queue"],
        priority=row["priority"],
        created_at=dialect.instant(row["created_at"]),
        due_at=dialect.instant(row["due_at"]),
        started_at=now,
        timeout=duration_or_none(dialect, row["timeout"]),
        retry=decode_retry(row["retry"]),
        tenant=row["tenant"] or None,
        trace_context=row["trace_context"],
    )


def record(dialect: Dialect, row: Row) -> JobRecord:
    held, rerun_of = row["held"], row["rerun_of"]
    return JobRecord(
        id=job_id(dialect, row),
        wire_name=row["wire_name"],
        queue=row["queue"],
        priority=row["priority"],
        state=state_of(row["state"]),
        held=None if held is None else held_of(held),
        due_at=dialect.instant(row["due_at"]),
        attempt=Attempt(row["attempt"]),
        failures=row["failures"],
        failures_base=row["failures_base"],
        lapses=row["lapses"],
        lapses_base=row["lapses_base"],
        worker=worker_id(dialect, row),
        started_at=instant_or_none(dialect, row["started_at"]),
        finished_at=instant_or_none(dialect, row["finished_at"]),
        cause=row["cause"],
        cancel_requested=row["cancel_requested"],
        retry=decode_retry(row["retry"]),
        timeout=duration_or_none(dialect, row["timeout"]),
        not_after=instant_or_none(dialect, row["not_after"]),
        idempotency_key=row["idempotency_key"],
        tenant=row["tenant"] or None,
        created_at=dialect.instant(row["created_at"]),
        rerun_of=None if rerun_of is None else JobId(dialect.uuid(rerun_of)),
        trace_context=row["trace_context"],
    )


def attempt_record(dialect: Dialect, row: Row) -> AttemptRecord:
    kind = row["error_kind"]
    stale = bool(row["stale"])
    return AttemptRecord(
        job_id=JobId(dialect.uuid(row["job_id"])),
        attempt=Attempt(row["attempt"]),
        worker=WorkerId(dialect.uuid(row["worker_id"])),
        verdict=verdict_of(row["verdict"]),
        error=None
        if kind is None
        else ErrorInfo(kind, row["error_message"], row["error_detail"] or ""),
        started_at=instant_or_none(dialect, row["started_at"]),
        ended_at=dialect.instant(row["ended_at"]),
        stale=stale,
        holder=_recorded_holder(dialect, row) if stale else None,
    )


def _recorded_holder(dialect: Dialect, row: Row) -> Holder:
    worker = row["holder_worker"]
    return Holder(
        None if worker is None else WorkerId(dialect.uuid(worker)),
        Attempt(row["holder_attempt"]),
        state_of(row["holder_state"]),
    )


def running_pairs(dialect: Dialect, rows: Sequence[Row]) -> tuple[RunningPair, ...]:
    return tuple(
        RunningPair(job_id(dialect, row), Attempt(row["attempt"]), row["cancel_requested"])
        for row in rows
    )


def lease_of(dialect: Dialect, row: Row) -> Lease:
    return Lease(
        dialect.instant(row["lease_expires_at"]),
        row["lapsed_at"] is not None,
        row["deregistered_at"] is not None,
    )


def lease_is_live(dialect: Dialect, row: Row, now: datetime) -> bool:
    """Whether a workers row holds a live lease; a row of nulls says that there is no worker."""
    return row["lease_expires_at"] is not None and lease_of(dialect, row).is_live(now)


def worker_info(dialect: Dialect, row: Row) -> WorkerInfo:
    return WorkerInfo(
        id=WorkerId(dialect.uuid(row["id"])),
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        queues=tuple(read_names(row["queues"])),
        wire_names=read_wire_names(row["wire_names"]),
        slots=row["slots"],
    )


def worker_record(dialect: Dialect, row: Row, now: datetime) -> WorkerRecord:
    info = worker_info(dialect, row)
    return WorkerRecord(
        id=info.id,
        host=info.host,
        pid=info.pid,
        version=info.version,
        queues=info.queues,
        wire_names=info.wire_names,
        slots=info.slots,
        started_at=dialect.instant(row["started_at"]),
        lease_expires_at=dialect.instant(row["lease_expires_at"]),
        lapsed_at=instant_or_none(dialect, row["lapsed_at"]),
        live=lease_of(dialect, row).is_live(now),
        running=row["running"],
    )


def write_names(names: Iterable[str]) -> str:
    """Names as JSON text."""
    return json.dumps(list(names), separators=(",", ":"))


def read_names(stored: str) -> list[str]:
    names: list[str] = json.loads(stored)
    return names


def write_wire_names(names: frozenset[str] | None) -> str:
    """The wire names that a worker knows, as JSON text; `null` is every name."""
    return "null" if names is None else write_names(sorted(names))


def read_wire_names(stored: str) -> frozenset[str] | None:
    """The names of a stored text; one that does not read stands for none (clause C6)."""
    try:
        names: list[str] | None = json.loads(stored)
        return None if names is None else frozenset(names)
    except (TypeError, ValueError):
        return frozenset()
