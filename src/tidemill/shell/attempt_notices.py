"""How attempts end and what keeps them from it, as log lines: one line per attempt's end."""

from __future__ import annotations

import logging
from typing import assert_never

from tidemill.shell.notices import fields_of, first_line, inner, logger
from tidemill.values.endings import (
    CancelReason,
    Discarded,
    Ending,
    Raised,
    Returned,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.workers import Pair


def log_ending(
    job: Claimed, ending: Ending, reason: CancelReason | None = None, actor: str | None = None
) -> None:
    """Log how an attempt ended, unless it ended as everyone hopes.

    Args:
        job: the attempt.
        ending: how its handler ended.
        reason: why the handler had been asked to stop; None if it had not.
        actor: who asked for the cancel, where that is known.
    """
    if reason is CancelReason.LEASE_LOST:
        what = "ended after its worker had lost the lease; nothing of it is reported"
        _log_attempt(logging.INFO, job, f"{what}, and the job runs elsewhere{_raised(ending)}")
    elif isinstance(ending, Returned):
        _log_attempt(logging.DEBUG, job, "returned")
    elif reason is CancelReason.TIMEOUT:
        what = f"failed: it did not end within its timeout{_length(job)}{_raised(ending)}"
        _log_attempt(logging.WARNING, job, what)
    elif reason is CancelReason.SHUTDOWN:
        what = "was cut off by the shutdown; the job is given back, at no cost"
        _log_attempt(logging.INFO, job, what + _raised(ending))
    else:
        _log_own_ending(job, ending, reason, actor)


def log_scope_fault(job: Claimed, fault: BaseException) -> None:
    """Log that the scope of an attempt that has an error of its own did not close either."""
    logger.error(
        "The scope of attempt %d of %s %s, which has not succeeded, did not close in order; the "
        "attempt ends with its own error.",
        job.attempt,
        job.wire_name,
        job.id,
        exc_info=fault,
        extra=fields_of(job.worker, job.id, job.attempt),
    )


def log_not_interrupted(worker: WorkerId, pair: Pair, reason: CancelReason) -> None:
    """Log that a handler in a thread was asked to stop: whether it does is up to it."""
    level = logging.WARNING if reason is CancelReason.TIMEOUT else logging.INFO
    logger.log(
        level,
        "Attempt %d of job %s was asked to stop (%s), but it runs in a thread, which cannot be "
        "interrupted: it goes on until it looks at `ctx.cancelled` or ends.",
        pair.attempt,
        pair.job_id,
        reason.value,
        extra=fields_of(worker, pair.job_id, pair.attempt),
    )


def log_killed(job: Claimed, reason: CancelReason | None, pid: int, seconds: float) -> None:
    """Log that a handler's process had to be killed."""
    why = "" if reason is None else f" ({reason.value})"
    what = f"did not end within {seconds:g} s of being asked{why}; its process {pid} is killed"
    _log_attempt(logging.WARNING, job, what)


def _log_own_ending(
    job: Claimed, ending: Ending, reason: CancelReason | None, actor: str | None
) -> None:
    match ending:
        case Raised(error):
            _log_attempt(logging.WARNING, job, f"failed with {_told(error)}")
        case Unroutable(cause, error):
            what = f"cannot be run ({cause}): {first_line(error.message)}"
            _log_attempt(logging.ERROR, job, what)
        case Discarded(error):
            _log_attempt(logging.INFO, job, f"asked to be discarded: {first_line(error.message)}")
        case Snoozed(delay):
            _log_attempt(logging.DEBUG, job, f"asked to come back after {delay}")
        case Stopped() if reason is None:
            what = "failed: it stopped with a cancellation that nobody had asked for"
            _log_attempt(logging.WARNING, job, what)
        case Stopped():
            by = "" if actor is None else f" (asked by {actor})"
            _log_attempt(logging.INFO, job, f"was cancelled{by}")
        case Returned():
            message = "a handler that returned is logged before"
            raise AssertionError(message)
        case _:
            assert_never(ending)


def _length(job: Claimed) -> str:
    return "" if job.timeout is None else f" of {job.timeout.total_seconds():g} s"


def _raised(ending: Ending) -> str:
    """What a handler raised when it was asked to stop, which does not decide how it ended."""
    return f"; it raised {_told(ending.error)}" if isinstance(ending, Raised) else ""


def _told(error: ErrorInfo) -> str:
    message = first_line(error.message)
    return f"{error.kind}: {message}" if message else error.kind


def _log_attempt(level: int, job: Claimed, what: str) -> None:
    if logger.isEnabledFor(level):
        extra = fields_of(job.worker, job.id, job.attempt)
        extra |= {"wire_name": job.wire_name, "queue": job.queue, "tenant": job.tenant}
        line = "Attempt %d of %s %s %s."
        logger.log(level, line, job.attempt, job.wire_name, job.id, inner(what), extra=extra)
