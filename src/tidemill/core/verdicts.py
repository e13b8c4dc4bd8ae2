"""What an ended attempt becomes. Every store asks here, under the row's lock.

`resolve` is the one place that turns (what the row says, what the report says) into the next
state. It knows no clock: a wait is a duration, and the store adds it to its own time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from tidemill.core.poison import is_poison
from tidemill.core.retry import backoff
from tidemill.core.transitions import By, check
from tidemill.values import causes
from tidemill.values.ids import Attempt, JobId
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

_NOW = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the locked row of a running job says: the tries spent, and a cancel request."""

    job_id: JobId
    attempt: Attempt
    retry: Retry
    failures: int
    failures_base: int
    lapses: int
    lapses_base: int
    cancel_requested: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Where the job goes: its next state, when it is due again, and what is counted.

    Attributes:
        delay: the wait before it is due; None leaves the due instant alone.
        cause: set exactly when the state is terminal and not `succeeded`.
        failed: 1 when a failure is counted, else 0.
        lapsed: 1 when a lapse is counted, else 0.
    """

    state: JobState
    delay: timedelta | None = None
    cause: str | None = None
    failed: int = 0
    lapsed: int = 0


def resolve(standing: Standing, outcome: Outcome) -> Resolution:
    """Decide what the report makes of the job (clauses B, E2, G2, G3)."""
    verdict = outcome.verdict
    if verdict is Verdict.SUCCEEDED:
        return _to(JobState.SUCCEEDED, By.SUCCESS)
    if standing.cancel_requested is not None:
        return _honour_cancel(standing.cancel_requested, verdict)
    match verdict:
        case Verdict.FAILED:
            return _failure(standing, outcome.error, outcome.delay)
        case Verdict.CANCELLED:
            return _failure(standing, None, None)
        case Verdict.DISCARDED:
            return _to(JobState.DEAD, By.DISCARD, cause=causes.DISCARDED, failed=1)
        case Verdict.UNROUTABLE:
            cause = outcome.cause or causes.NO_HANDLER
            return _to(JobState.QUARANTINED, By.UNROUTABLE, cause=cause)
        case Verdict.RELEASED:
            return _to(JobState.READY, By.RELEASE)
        case Verdict.SNOOZED:
            return _again(outcome.delay or _NOW, By.SNOOZE)
        case Verdict.LAPSED:
            return _lapse(standing)
        case _:
            assert_never(verdict)


def tries_spent(standing: Standing) -> int:
    """Failures since the last requeue, and lapses too where they count (clause E2)."""
    failures = standing.failures - standing.failures_base
    return failures + (_lapses(standing) if standing.retry.count_lapses else 0)


def _honour_cancel(actor: str, verdict: Verdict) -> Resolution:
    return _to(
        JobState.CANCELLED,
        By.CANCEL_HONOURED,
        cause=causes.operator(actor),
        failed=int(verdict in {Verdict.FAILED, Verdict.DISCARDED}),
        lapsed=int(verdict is Verdict.LAPSED),
    )


def _failure(standing: Standing, error: ErrorInfo | None, delay: timedelta | None) -> Resolution:
    retry = standing.retry
    asked = delay is not None  # a handler that asks for another try says that it may be retried
    if not asked and error is not None and _names_any(error, retry.discard_on):
        return _to(JobState.DEAD, By.DISCARD, cause=causes.DISCARDED, failed=1)
    if not asked and retry.retry_on and not (error and _names_any(error, retry.retry_on)):
        return _to(JobState.DEAD, By.FAILURE, cause=causes.NOT_RETRYABLE, failed=1)
    if tries_spent(standing) + 1 >= retry.max_attempts:
        return _to(JobState.DEAD, By.FAILURE, cause=causes.ATTEMPTS_EXHAUSTED, failed=1)
    wait = _backoff(standing) if delay is None else delay
    return _again(wait, By.FAILURE, failed=1)


def _lapse(standing: Standing) -> Resolution:
    if is_poison(standing.retry, _lapses(standing) + 1):
        return _to(JobState.DEAD, By.INTERRUPTION_LIMIT, cause=causes.POISON, lapsed=1)
    counts = standing.retry.count_lapses
    if counts and tries_spent(standing) + 1 >= standing.retry.max_attempts:
        return _to(JobState.DEAD, By.LAPSE, cause=causes.ATTEMPTS_EXHAUSTED, lapsed=1)
    return _again(_backoff(standing), By.LAPSE, lapsed=1)


def _backoff(standing: Standing) -> timedelta:
    ended = standing.failures - standing.failures_base + _lapses(standing) + 1
    return backoff(standing.retry, ended, standing.job_id, standing.attempt)


def _lapses(standing: Standing) -> int:
    return standing.lapses - standing.lapses_base


def _names_any(error: ErrorInfo, names: tuple[str, ...]) -> bool:
    return not {error.kind, *error.ancestry}.isdisjoint(names)


def _again(wait: timedelta, by: By, *, failed: int = 0, lapsed: int = 0) -> Resolution:
    state = JobState.SCHEDULED if wait > _NOW else JobState.READY
    check(JobState.RUNNING, state, by)
    return Resolution(state=state, delay=wait, failed=failed, lapsed=lapsed)


def _to(
    state: JobState, by: By, *, cause: str | None = None, failed: int = 0, lapsed: int = 0
) -> Resolution:
    check(JobState.RUNNING, state, by)
    return Resolution(state=state, cause=cause, failed=failed, lapsed=lapsed)
