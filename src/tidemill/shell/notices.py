"""What the core wants known, as log lines: one event per line, its fields in `extra`."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import assert_never

from tidemill.core.commands import (
    Notice,
    NoticeDegraded,
    NoticeDropped,
    NoticeLapsed,
    NoticeRecovered,
    NoticeReleased,
    NoticeStale,
)
from tidemill.core.pulse import (
    NoticeLeaseLost,
    NoticeNoAnswer,
    NoticeRegistered,
    NoticeStalled,
    PulseNotice,
)
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
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.workers import Pair

logger = logging.getLogger("tidemill.worker")


def log_notice(notice: Notice) -> None:
    """Log what the node wants known."""
    match notice:
        case NoticeStale():
            _log_stale(notice)
        case NoticeLapsed(lapsed):
            logger.warning(
                "Attempt %d of job %s lapsed with its worker %s; the job is now %s%s.",
                lapsed.attempt,
                lapsed.job_id,
                lapsed.worker,
                lapsed.state.value,
                f" ({lapsed.cause})" if lapsed.cause else "",
                extra=_fields(lapsed.worker, lapsed.job_id, lapsed.attempt),
            )
        case NoticeReleased(worker, pair):
            logger.warning(
                "Attempt %d of job %s was running under this worker, which does not hold it "
                "(the answer to its claim was lost); it is given back.",
                pair.attempt,
                pair.job_id,
                extra=_fields(worker, pair.job_id, pair.attempt),
            )
        case NoticeDropped(worker, pair, why):
            logger.error(
                "The end of attempt %d of job %s cannot be recorded: the store refuses to count "
                "even a failure. It stays running, and is offered again until it can be (%s).",
                pair.attempt,
                pair.job_id,
                _inner(why),
                extra=_fields(worker, pair.job_id, pair.attempt),
            )
        case NoticeDegraded(why):
            logger.warning(
                "The store does not answer; trying again until it does (%s).", _inner(why)
            )
        case NoticeRecovered():
            logger.warning("The store answers again.")
        case _:
            assert_never(notice)


def log_ending(job: Claimed, ending: Ending) -> None:
    """Log how a handler ended, unless it ended as everyone hopes."""
    match ending:
        case Raised(error):
            _log_attempt(logging.WARNING, job, f"failed with {error.kind}: {error.message}")
        case Unroutable(cause, error):
            _log_attempt(logging.ERROR, job, f"cannot be run ({cause}): {error.message}")
        case Discarded(error):
            _log_attempt(logging.INFO, job, f"asked to be discarded: {error.message}")
        case Snoozed(delay):
            _log_attempt(logging.DEBUG, job, f"asked to come back after {delay}")
        case Stopped():
            _log_attempt(logging.INFO, job, "was cancelled")
        case Returned():
            _log_attempt(logging.DEBUG, job, "returned")
        case _:
            assert_never(ending)


def log_scope_fault(job: Claimed, fault: BaseException) -> None:
    """Log that the scope of an attempt that has an error of its own did not close either."""
    logger.error(
        "The scope of attempt %d of %s %s, which has not succeeded, did not close in order; the "
        "attempt ends with its own error.",
        job.attempt,
        job.wire_name,
        job.id,
        exc_info=fault,
        extra=_fields(job.worker, job.id, job.attempt),
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
        extra=_fields(worker, pair.job_id, pair.attempt),
    )


def log_killed(job: Claimed, reason: CancelReason | None, pid: int, seconds: float) -> None:
    """Log that a handler's process had to be killed."""
    why = "" if reason is None else f" ({reason.value})"
    what = f"did not end within {seconds:g} s of being asked{why}; its process {pid} is killed"
    _log_attempt(logging.WARNING, job, what)


def log_start(queues: tuple[str, ...], slots: int, wire_names: frozenset[str]) -> None:
    """Log what a worker serves."""
    if not wire_names:
        logger.warning("This worker knows no job: is the module that declares them imported?")
    logger.info(
        "Serving %s with %d slots; jobs known: %s. Interrupt (Ctrl-C) or SIGTERM ends it in order.",
        ", ".join(queues),
        slots,
        ", ".join(sorted(wire_names)) or "none",
    )


def log_drain(running: int, grace: timedelta, longest: timedelta) -> None:
    """Log that a signal was heard."""
    logger.info(
        "Ending: nothing more is claimed; %d running handlers may finish within %g s. "
        "If they or the store do not answer, the end comes after %g s all the same. "
        "A second signal hurries.",
        running,
        grace.total_seconds(),
        longest.total_seconds(),
    )


def log_hurry(running: int, patience: timedelta) -> None:
    """Log that a further signal was heard."""
    logger.warning(
        "Hurrying: %d running handlers are asked to stop, for %g s at most.",
        running,
        patience.total_seconds(),
    )


def log_pulse_notice(notice: PulseNotice) -> None:
    """Log what the pulse wants known."""
    match notice:
        case NoticeRegistered(worker):
            logger.info("Registered as worker %s.", worker, extra={"worker": str(worker)})
        case NoticeLeaseLost(worker, why):
            logger.warning(
                "Worker %s lost its lease: %s. Its handlers are cancelled; registering anew.",
                worker,
                why,
                extra={"worker": str(worker)},
            )
        case NoticeStalled(worker, seconds):
            logger.error(
                "The event loop of worker %s has not turned for %.0f s: a handler blocks it. "
                "Heartbeats stop, and its jobs will be given to other workers.",
                worker,
                seconds,
                extra={"worker": str(worker)},
            )
        case NoticeNoAnswer(why):
            logger.warning(
                "A heartbeat had no answer; trying again until it has (%s).", _inner(why)
            )
        case _:
            assert_never(notice)


def _log_stale(notice: NoticeStale) -> None:
    reported, holder = notice.reported, notice.reported.holder
    now = None if holder is None else holder.worker
    attempt = reported.attempt if holder is None else holder.attempt
    logger.warning(
        "Rejected a stale report on job %s: it came from worker %s, attempt %d; "
        "the job is %s, held by %s, attempt %d. Nothing of the report was applied.",
        reported.job_id,
        notice.worker,
        reported.attempt,
        "gone" if holder is None else holder.state.value,
        "nobody" if now is None else f"worker {now}",
        attempt,
        extra={
            **_fields(notice.worker, reported.job_id, reported.attempt),
            "holder_worker": None if now is None else str(now),
            "holder_attempt": attempt,
        },
    )


def _inner(why: str) -> str:
    """A sentence as part of another one."""
    return why.rstrip(".")


def _log_attempt(level: int, job: Claimed, what: str) -> None:
    if logger.isEnabledFor(level):
        extra = _fields(job.worker, job.id, job.attempt)
        extra |= {"wire_name": job.wire_name, "queue": job.queue, "tenant": job.tenant}
        line = "Attempt %d of %s %s %s."
        logger.log(level, line, job.attempt, job.wire_name, job.id, _inner(what), extra=extra)


def _fields(worker: WorkerId, job_id: JobId, attempt: Attempt) -> dict[str, object]:
    return {"worker": str(worker), "job_id": str(job_id), "attempt": attempt}
