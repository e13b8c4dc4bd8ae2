"""Jobs as JSON. The keys are stable: programs read them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidemill.cli.output import raw_json
from tidemill.values.jobs import AttemptRecord, Holder, JobDetails, JobRecord
from tidemill.values.notes import JobLine, JobProgress
from tidemill.values.operators import ActionResult
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.retry import Retry


def record(job: JobRecord) -> dict[str, Any]:
    return {
        "id": job.id,
        "wire_name": job.wire_name,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state,
        "held": job.held,
        "cause": job.cause,
        "attempt": job.attempt,
        "failures": job.failures,
        "failures_base": job.failures_base,
        "lapses": job.lapses,
        "lapses_base": job.lapses_base,
        "worker": job.worker,
        "created_at": job.created_at,
        "due_at": job.due_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "not_after": job.not_after,
        "timeout_seconds": _seconds(job.timeout),
        "retry": _retry(job.retry),
        "cancel_requested": job.cancel_requested,
        "idempotency_key": job.idempotency_key,
        "tenant": job.tenant,
        "rerun_of": job.rerun_of,
        "trace_context": job.trace_context,
        "progress": _progress(job.progress),
        "unreadable": list(job.unreadable),
    }


def details(job: JobDetails) -> dict[str, Any]:
    return record(job.record) | {
        "payload": raw_json(job.payload),
        "output": raw_json(job.output),
        "tags": [{"key": tag.key, "value": tag.value} for tag in sorted(job.tags)],
        "attempts": [_attempt(each) for each in job.attempts if not each.stale],
        "stale_reports": [
            _attempt(each) | {"holder": _holder(each.holder)} for each in job.attempts if each.stale
        ],
        "log": [line(each) for each in job.log],
    }


def line(one: JobLine) -> dict[str, Any]:
    return {
        "attempt": one.attempt,
        "number": one.number,
        "at": one.at,
        "message": one.message,
        "fields": raw_json(one.fields.encode()) if one.fields else {},
    }


def action_result(result: ActionResult) -> dict[str, Any]:
    return {
        "job_id": result.job_id,
        "effect": result.effect,
        "state": result.state,
        "other": result.other,
    }


def _attempt(one: AttemptRecord) -> dict[str, Any]:
    return {
        "attempt": one.attempt,
        "worker": one.worker,
        "verdict": one.verdict,
        "error": _error(one.error),
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "unreadable": list(one.unreadable),
    }


def _progress(progress: JobProgress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {
        "attempt": progress.attempt,
        "fraction": progress.fraction,
        "message": progress.message,
        "at": progress.at,
    }


def _error(error: ErrorInfo | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"kind": error.kind, "message": error.message, "detail": error.detail}


def _holder(holder: Holder | None) -> dict[str, Any] | None:
    if holder is None:
        return None
    return {"worker": holder.worker, "attempt": holder.attempt, "state": holder.state}


def _retry(retry: Retry) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "backoff": retry.backoff,
        "delays_seconds": [delay.total_seconds() for delay in retry.delays],
        "factor": retry.factor,
        "cap_seconds": retry.cap.total_seconds(),
        "jitter": retry.jitter,
        "count_lapses": retry.count_lapses,
        "interruption_limit": retry.interruption_limit,
        "retry_on": retry.retry_on,
        "discard_on": retry.discard_on,
    }


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
