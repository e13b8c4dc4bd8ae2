"""What the core wants known, as log lines: one event per line, its fields in `extra`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, assert_never

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
    NoticeAnswered,
    NoticeLeaseLost,
    NoticeNoAnswer,
    NoticeRegistered,
    NoticeStalled,
    PulseNotice,
)
from tidemill.values.ids import Attempt, JobId, WorkerId

logger = logging.getLogger("tidemill.worker")

_ROOM_FOR_QUEUES: Final = 20
_ROOM_FOR_NAMES: Final = 32
"""In characters, so that the line of a worker that starts stays short."""


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
                extra=fields_of(lapsed.worker, lapsed.job_id, lapsed.attempt),
            )
        case NoticeReleased(worker, pair):
            logger.warning(
                "Attempt %d of job %s was running under this worker, which does not hold it "
                "(the answer to its claim was lost); it is given back.",
                pair.attempt,
                pair.job_id,
                extra=fields_of(worker, pair.job_id, pair.attempt),
            )
        case NoticeDropped(worker, pair, why):
            logger.error(
                "The end of attempt %d of job %s cannot be recorded: the store refuses to count "
                "even a failure. It stays running, and is offered again until it can be (%s).",
                pair.attempt,
                pair.job_id,
                inner(first_line(why)),
                extra=fields_of(worker, pair.job_id, pair.attempt),
            )
        case NoticeDegraded(why):
            logger.warning(
                "The store does not answer; trying again until it does (%s).",
                inner(first_line(why)),
            )
        case NoticeRecovered():
            logger.warning("The store answers again.")
        case _:
            assert_never(notice)


def log_start(queues: tuple[str, ...], slots: int, wire_names: frozenset[str]) -> None:
    """Log what a worker serves: the first names in the line, and all of them in its fields."""
    if not wire_names:
        logger.warning("This worker knows no job: is the module that declares them imported?")
    known = sorted(wire_names)
    logger.info(
        "Serving %s (%s); jobs: %s. Ctrl-C ends it.",
        _some(queues, _ROOM_FOR_QUEUES),
        _counted(slots, "slot"),
        _some(known, _ROOM_FOR_NAMES) or "none",
        extra={"queues": list(queues), "slots": slots, "wire_names": known},
    )


def log_drain(running: int, grace: timedelta, longest: timedelta, why: str = "") -> None:
    """Log that the end was asked for, and why if that was not by a signal."""
    asked = f" {why}" if why else ""
    if not running:
        logger.info("Ending%s: nothing more is claimed; nothing runs.", asked)
        return
    logger.info(
        "Ending%s: nothing more is claimed; %s may finish within %g s. "
        "If the end is not reached, it comes after %g s all the same. A second signal hurries.",
        asked,
        _counted(running, "running handler"),
        grace.total_seconds(),
        longest.total_seconds(),
    )


def log_hurry(running: int, patience: timedelta) -> None:
    """Log that a further signal was heard."""
    if not running:
        logger.warning("Hurrying the end, in which nothing runs any more.")
        return
    verb = "is" if running == 1 else "are"
    logger.warning(
        "Hurrying: %s %s asked to stop, for %g s at most.",
        _counted(running, "running handler"),
        verb,
        patience.total_seconds(),
    )


def log_stood_still(seconds: float) -> None:
    """Log that the event loop was blocked, when it turns again."""
    logger.warning(
        "The event loop stood still for %.1f s: a handler blocks it, or the machine stood still. "
        "Code that blocks belongs in a plain `def`, which runs in a thread, and code that computes "
        'for long in `executor="process"`.',
        seconds,
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
                "A heartbeat had no answer; trying again until it has (%s).", inner(first_line(why))
            )
        case NoticeAnswered():
            logger.warning("Heartbeats are answered again.")
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
            **fields_of(notice.worker, reported.job_id, reported.attempt),
            "holder_worker": None if now is None else str(now),
            "holder_attempt": attempt,
        },
    )


def _some(names: Sequence[str], room: int) -> str:
    """As many names as there is room for in a line, at least one, and how many more there are."""
    shown = list(names[:1])
    for name in names[1:]:
        if len(", ".join((*shown, name))) > room:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _counted(count: int, one: str) -> str:
    """`1 slot`, `20 slots`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def first_line(text: str) -> str:
    """The first line of a text that says anything, marked if more follows; the job keeps all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    more = " …" if len(lines) > 1 else ""
    return f"{lines[0]}{more}" if lines else ""


def inner(text: str) -> str:
    """A sentence as part of another one."""
    return text.rstrip(".")


def fields_of(worker: WorkerId, job_id: JobId, attempt: Attempt) -> dict[str, object]:
    """What every line about an attempt carries in `extra`."""
    return {"worker": str(worker), "job_id": str(job_id), "attempt": attempt}
