"""From how a handler ended to what is reported (clauses E3, G2, G3)."""

from datetime import timedelta
from uuid import UUID

import pytest

from tidemill.core.endings import STOPPED_UNASKED, TIMED_OUT, outcome_of
from tidemill.values.endings import (
    CancelReason,
    Discarded,
    Raised,
    Returned,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.ids import Attempt, JobId
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.tags import Tag
from tidemill.values.workers import Pair

PAIR = Pair(JobId(UUID(int=1)), Attempt(3))
ERROR = ErrorInfo("ValueError", "cracked", "trace")
WAIT = timedelta(minutes=1)
TAGS = frozenset({Tag("fine")})
RETURNED = Returned(b"1", TAGS)
EVERY_ENDING = [
    RETURNED,
    Raised(ERROR),
    Raised(ERROR, WAIT),
    Discarded(ERROR),
    Snoozed(WAIT),
    Stopped(),
    Unroutable("payload", ERROR),
]
NOT_RETURNED = EVERY_ENDING[1:]
REASONS = [None, *CancelReason]


def reported(verdict: Verdict, **rest) -> Outcome:
    return Outcome(job_id=PAIR.job_id, attempt=PAIR.attempt, verdict=verdict, **rest)


@pytest.mark.parametrize("ending", EVERY_ENDING)
def test_a_lost_lease_reports_nothing(ending) -> None:
    assert outcome_of(PAIR, ending, CancelReason.LEASE_LOST) is None


@pytest.mark.parametrize("reason", [r for r in REASONS if r is not CancelReason.LEASE_LOST])
def test_a_handler_that_finishes_first_still_succeeds(reason) -> None:
    success = reported(Verdict.SUCCEEDED, output=b"1", tags=TAGS)
    assert outcome_of(PAIR, RETURNED, reason) == success


@pytest.mark.parametrize("ending", NOT_RETURNED)
def test_any_other_end_at_shutdown_is_released(ending) -> None:
    assert outcome_of(PAIR, ending, CancelReason.SHUTDOWN) == reported(Verdict.RELEASED)


@pytest.mark.parametrize("ending", NOT_RETURNED)
def test_any_other_end_at_a_timeout_is_failed_as_one(ending) -> None:
    outcome = outcome_of(PAIR, ending, CancelReason.TIMEOUT)
    assert outcome is not None
    assert (outcome.verdict, outcome.delay) == (Verdict.FAILED, None)
    assert outcome.error is not None
    assert outcome.error.kind == TIMED_OUT


def test_what_a_handler_raised_at_its_timeout_is_kept() -> None:
    outcome = outcome_of(PAIR, Raised(ERROR), CancelReason.TIMEOUT)
    assert outcome is not None
    assert outcome.error is not None
    assert "ValueError: cracked" in outcome.error.message
    assert outcome.error.detail == "trace"


def test_a_stop_that_an_operator_asked_for_is_cancelled() -> None:
    assert outcome_of(PAIR, Stopped(), CancelReason.OPERATOR) == reported(Verdict.CANCELLED)


def test_a_stop_that_nobody_asked_for_is_a_failure_that_says_so() -> None:
    outcome = outcome_of(PAIR, Stopped(), None)
    assert outcome is not None
    assert outcome.verdict is Verdict.FAILED
    assert outcome.error is not None
    assert outcome.error.kind == STOPPED_UNASKED


@pytest.mark.parametrize("reason", [None, CancelReason.OPERATOR])
@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Raised(ERROR), reported(Verdict.FAILED, error=ERROR)),
        (Raised(ERROR, WAIT), reported(Verdict.FAILED, error=ERROR, delay=WAIT)),
        (Discarded(ERROR), reported(Verdict.DISCARDED, error=ERROR)),
        (Snoozed(WAIT), reported(Verdict.SNOOZED, delay=WAIT)),
        (Unroutable("payload", ERROR), reported(Verdict.UNROUTABLE, cause="payload", error=ERROR)),
    ],
)
def test_what_the_handler_said_is_reported_and_the_store_honours_the_cancel(
    reason, ending, outcome
) -> None:
    assert outcome_of(PAIR, ending, reason) == outcome


@pytest.mark.parametrize("ending", [Stopped(), Raised(ErrorInfo("shop.Slow", "not yet"))])
@pytest.mark.parametrize("name", ["TimeoutError", TIMED_OUT, "Exception"])
def test_a_policy_that_names_timeouts_means_the_handlers_own(ending, name) -> None:
    outcome = outcome_of(PAIR, ending, CancelReason.TIMEOUT)
    assert outcome is not None
    assert outcome.error is not None
    assert name in outcome.error.ancestry
