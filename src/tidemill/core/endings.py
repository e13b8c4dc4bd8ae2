"""From how a handler ended to the outcome that is reported (clauses E3, G2, G3)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

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
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.workers import Pair

TIMED_OUT = "tidemill.HandlerTimeout"
TIMEOUT_ANCESTRY = ("TimeoutError", "OSError", "Exception", "BaseException")
"""A policy that names the built-in TimeoutError means a handler's timeout too."""

STOPPED_UNASKED = "tidemill.StoppedUnasked"

COMPLETION_ROLLED_BACK = "tidemill.CompletionRolledBack"


def outcome_of(pair: Pair, ending: Ending, reason: CancelReason | None) -> Outcome | None:
    """The outcome of an attempt; None when there is nothing to report.

    `reason` is why the handler was asked to stop, if it was. A handler that finishes first still
    succeeds; any other end follows from the reason: an operator's cancel ends `cancelled`, a
    shutdown `released`, a timeout `failed`, and a lost lease reports nothing.
    """
    if reason is CancelReason.LEASE_LOST:
        return None
    job_id, attempt = pair
    if isinstance(ending, Returned):
        return Outcome(
            job_id=job_id,
            attempt=attempt,
            verdict=Verdict.SUCCEEDED,
            output=ending.output,
            tags=ending.tags,
            children=ending.children,
        )
    if reason is CancelReason.SHUTDOWN:
        return Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.RELEASED)
    if reason is CancelReason.TIMEOUT:
        return _failed(pair, _timeout_error(ending))
    return _unasked(pair, ending, reason)


def unless_completed(outcome: Outcome) -> Outcome:
    """What to report of an attempt that its handler may have completed in its own transaction.

    If that transaction has committed, the row says so and this is not applied. If not, a handler
    that returned has failed all the same (clause D8).
    """
    if outcome.verdict is not Verdict.SUCCEEDED:
        return replace(outcome, in_transaction=True)
    message = (
        "The handler returned, but the transaction in which it had completed the job was rolled "
        "back."
    )
    error = ErrorInfo(COMPLETION_ROLLED_BACK, message)
    pair = Pair(outcome.job_id, outcome.attempt)
    return replace(_failed(pair, error), in_transaction=True)


def _unasked(pair: Pair, ending: Ending, reason: CancelReason | None) -> Outcome:
    job_id, attempt = pair
    match ending:
        case Raised(error, delay):
            return Outcome(
                job_id=job_id, attempt=attempt, verdict=Verdict.FAILED, error=error, delay=delay
            )
        case Discarded(error):
            return Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.DISCARDED, error=error)
        case Snoozed(delay):
            return Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.SNOOZED, delay=delay)
        case Unroutable(cause, error):
            return Outcome(
                job_id=job_id, attempt=attempt, verdict=Verdict.UNROUTABLE, cause=cause, error=error
            )
        case Stopped():
            if reason is CancelReason.OPERATOR:
                return Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.CANCELLED)
            message = "The handler stopped with a cancellation that nobody had asked for."
            return _failed(pair, ErrorInfo(STOPPED_UNASKED, message))
        case Returned():
            message = "a handler that returned is judged before"
            raise AssertionError(message)
        case _:
            assert_never(ending)


def _failed(pair: Pair, error: ErrorInfo) -> Outcome:
    return Outcome(job_id=pair.job_id, attempt=pair.attempt, verdict=Verdict.FAILED, error=error)


def _timeout_error(ending: Ending) -> ErrorInfo:
    message = "The handler did not end within its timeout."
    ancestry = (TIMED_OUT, *TIMEOUT_ANCESTRY)
    if isinstance(ending, Raised):
        raised = ending.error
        message = f"{message} It raised {raised.kind}: {raised.message}"
        return ErrorInfo(TIMED_OUT, message, raised.detail, ancestry)
    return ErrorInfo(TIMED_OUT, message, ancestry=ancestry)
