"""From rows to values: what each kind of row says, read through a dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tidemill.core.verdicts import Standing
from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.program import Row
from tidemill.sql.reading import Reading
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import AttemptRecord, Claimed, Holder, JobDetails, JobRecord
from tidemill.values.notes import JobLine
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.tags import Tag
from tidemill.values.workers import RunningPair

NO_TENANT = ""
"""What stands for the job without a tenant (clause F3)."""

_NO_TIME: Final = timedelta(0)


def job_id(dialect: Dialect, row: Row) -> JobId:
    return JobId(dialect.uuid(row["id"]))


def holder(dialect: Dialect, row: Row) -> Holder:
    """Who holds a job; what cannot be read is nobody, so no report passes the fence by it."""
    return _holder(Reading(dialect, row))


def standing(dialect: Dialect, row: Row) -> Standing:
    """What a running job's row says. What cannot be read counts as nothing, or as the default.

    Recording how an attempt ended never fails (clause D6); the next claim looks more closely.
    """
    return _standing(Reading(dialect, row))


def holder_and_standing(dialect: Dialect, row: Row) -> tuple[Holder, Standing, tuple[str, ...]]:
    """The same two, and the columns among them that cannot be read."""
    read = Reading(dialect, row)
    found = _holder(read), _standing(read)
    read.instant_or_none("started_at")
    read.instant("due_at")
    return *found, tuple(dict.fromkeys(read.faults))


def _holder(read: Reading) -> Holder:
    return Holder(_worker(read, "worker_id"), Attempt(read.count("attempt")), read.state("state"))


def _standing(read: Reading) -> Standing:
    return Standing(
        job_id=JobId(read.uuid("id")),
        attempt=Attempt(read.count("attempt")),
        retry=read.retry("retry"),
        failures=read.count("failures"),
        failures_base=read.count("failures_base"),
        lapses=read.count("lapses"),
        lapses_base=read.count("lapses_base"),
        cancel_requested=read.text_or_none("cancel_requested"),
    )


def _worker(read: Reading, column: str) -> WorkerId | None:
    found = read.uuid_or_none(column)
    return None if found is None else WorkerId(found)


def claimed(read: Reading, worker: WorkerId, now: datetime) -> Claimed:
    """A ready row as it is handed to a worker: the attempt is the one that starts.

    Good for a worker only if the reading found no faults.
    """
    return Claimed(
        id=JobId(read.uuid("id")),
        attempt=Attempt(read.count("attempt") + 1),
        worker=worker,
        wire_name=read.text("wire_name"),
        payload=read.blob("payload"),
        queue=read.text("queue"),
        priority=read.priority("priority"),
        created_at=read.instant("created_at"),
        due_at=read.instant("due_at"),
        started_at=now,
        timeout=read.duration_or_none("timeout"),
        retry=read.retry("retry"),
        tenant=read.text("tenant") or None,
        trace_context=read.text_or_none("trace_context"),
    )


def record(dialect: Dialect, row: Row) -> JobRecord:
    """A job as lists show it, with the names of the columns that cannot be read."""
    read = Reading(dialect, row)
    rerun_of = read.uuid_or_none("rerun_of")
    found = JobRecord(
        id=JobId(read.uuid("id")),
        wire_name=read.text("wire_name"),
        queue=read.text("queue"),
        priority=read.priority("priority"),
        state=read.state("state"),
        held=read.held_or_none("held"),
        due_at=read.instant("due_at"),
        attempt=Attempt(read.count("attempt")),
        failures=read.count("failures"),
        failures_base=read.count("failures_base"),
        lapses=read.count("lapses"),
        lapses_base=read.count("lapses_base"),
        worker=_worker(read, "worker_id"),
        started_at=read.instant_or_none("started_at"),
        finished_at=read.instant_or_none("finished_at"),
        cause=read.text_or_none("cause"),
        cancel_requested=read.text_or_none("cancel_requested"),
        retry=read.retry("retry"),
        timeout=read.duration_or_none("timeout"),
        not_after=read.instant_or_none("not_after"),
        idempotency_key=read.text_or_none("idempotency_key"),
        tenant=read.text("tenant") or None,
        created_at=read.instant("created_at"),
        rerun_of=None if rerun_of is None else JobId(rerun_of),
        trace_context=read.text_or_none("trace_context"),
        unsettled=row["unsettled"] is not None,
        progress=read.progress_or_none("progress"),
    )
    return replace(found, unreadable=tuple(read.faults)) if read.faults else found


def details(dialect: Dialect, row: Row, tags: Iterable[Row], attempts: Iterable[Row]) -> JobDetails:
    """One job, whole; its record names the columns that cannot be read."""
    read = Reading(dialect, row)
    payload, output = read.blob("payload"), read.blob_or_none("output")
    found = record(dialect, row)
    return JobDetails(
        record=replace(found, unreadable=(*found.unreadable, *read.faults)),
        payload=payload,
        output=output,
        tags=read_tag_rows(dialect, tags),
        attempts=tuple(attempt_record(dialect, each) for each in attempts),
    )


def read_tag_rows(dialect: Dialect, rows: Iterable[Row]) -> frozenset[Tag]:
    """The tags of a job; what is no text is shown as it is stored, since tags influence nothing."""
    read = (Reading(dialect, row) for row in rows)
    return frozenset(Tag(each.text("tag"), each.text("value")) for each in read)


def attempt_record(dialect: Dialect, row: Row) -> AttemptRecord:
    """How an attempt ended, with the names of the columns that cannot be read."""
    read = Reading(dialect, row)
    stale = bool(row["stale"])
    found = AttemptRecord(
        job_id=JobId(read.uuid("job_id")),
        attempt=Attempt(read.count("attempt")),
        worker=WorkerId(read.uuid("worker_id")),
        verdict=read.verdict("verdict"),
        error=_error(read, row),
        started_at=read.instant_or_none("started_at"),
        ended_at=read.instant("ended_at"),
        stale=stale,
        holder=_recorded_holder(read) if stale else None,
    )
    return replace(found, unreadable=tuple(read.faults)) if read.faults else found


def job_lines(dialect: Dialect, rows: Sequence[Row]) -> tuple[JobLine, ...]:
    """Lines of a job's log; what cannot be read is shown as it is stored, a number as zero."""
    return tuple(_line(Reading(dialect, row)) for row in rows)


def _line(read: Reading) -> JobLine:
    return JobLine(
        attempt=Attempt(read.count("attempt")),
        number=read.count("number"),
        at=read.instant("at"),
        message=read.text("message"),
        fields=read.text("fields"),
    )


def _error(read: Reading, row: Row) -> ErrorInfo | None:
    if row["error_kind"] is None:
        return None
    message, detail = read.text_or_none("error_message"), read.text_or_none("error_detail")
    return ErrorInfo(read.text("error_kind"), message or "", detail or "")


def _recorded_holder(read: Reading) -> Holder:
    return Holder(
        _worker(read, "holder_worker"),
        Attempt(read.count("holder_attempt")),
        read.state("holder_state"),
    )


def running_pairs(dialect: Dialect, rows: Sequence[Row]) -> tuple[RunningPair, ...]:
    """What runs under a worker. A row that cannot be read is left out, and so is nobody's."""
    pairs: list[RunningPair] = []
    for row in rows:
        read = Reading(dialect, row)
        asked = row["cancel_requested"]
        pair = RunningPair(JobId(read.uuid("id")), Attempt(read.count("attempt")), asked)
        if not read.faults:
            pairs.append(pair)
    return tuple(pairs)


def wait_until(dialect: Dialect, stored: object, now: datetime) -> timedelta | None:
    """How long until a stored due instant, zero if it has come or cannot be read; None if none.

    Whoever claims then finds out what is wrong with it. One beyond the calendar never comes.
    """
    if stored is None:
        return None
    try:
        return max(dialect.instant(stored) - now, _NO_TIME)
    except OverflowError:
        return timedelta.max if isinstance(stored, int | float) and stored > 0 else _NO_TIME
    except Exception:  # noqa: BLE001 - a row that cannot be read must not stop those that can
        return _NO_TIME
