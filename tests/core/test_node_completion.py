"""What a node makes of handlers that complete their jobs in transactions of their own (D8)."""

import pytest
from tests.core.script import FAR, W1, Script, pair_of, running

from tidemill.core.commands import CancelHandler, DoExchange
from tidemill.core.endings import COMPLETION_ROLLED_BACK
from tidemill.core.events import CompletionBegun, DrainAsked
from tidemill.values.endings import CancelReason, Discarded, Raised, Returned, Snoozed, Stopped
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Verdict

BROKEN = ErrorInfo("ValueError", "cracked")


def begun(script: Script, at: float, number: int) -> None:
    script.tell(CompletionBegun(at, W1, pair_of(number)))


def reported(script: Script) -> Outcome:
    (outcome,) = script.only(DoExchange).outcomes
    return outcome


def test_a_handler_that_returned_is_reported_as_failed_unless_its_transaction_committed() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    begun(script, 1.0, 1)
    script.finish(2.0, 1, Returned(b"7"))
    outcome = reported(script)
    assert (outcome.verdict, outcome.in_transaction) == (Verdict.FAILED, True)
    assert outcome.error is not None
    assert outcome.error.kind == COMPLETION_ROLLED_BACK
    assert (outcome.output, outcome.tags) == (None, frozenset())


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Raised(BROKEN), Verdict.FAILED),
        (Discarded(BROKEN), Verdict.DISCARDED),
        (Snoozed(None), Verdict.SNOOZED),  # type: ignore[arg-type]
    ],
)
def test_any_other_ending_keeps_its_verdict_and_its_error(ending, verdict) -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    begun(script, 1.0, 1)
    script.finish(2.0, 1, ending)
    outcome = reported(script)
    assert (outcome.verdict, outcome.in_transaction) == (verdict, True)
    assert outcome.error == getattr(ending, "error", None)


def test_a_handler_that_did_not_complete_is_reported_as_ever() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(2.0, 1, Returned(b"7"))
    outcome = reported(script)
    assert (outcome.verdict, outcome.in_transaction) == (Verdict.SUCCEEDED, False)


def test_a_completed_attempt_that_the_store_lists_no_more_is_not_lost() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    begun(script, 1.0, 1)
    script.listed(2.0, running(2))
    script.listed(3.0, running(2))
    assert script.all(CancelHandler) == []
    script.finish(4.0, 1)
    assert reported(script).in_transaction


def test_an_attempt_beside_it_is_lost_all_the_same() -> None:
    script = Script()
    script.start_jobs(0.0, 1, 2)
    begun(script, 1.0, 1)
    script.listed(2.0)
    (asked,) = script.all(CancelHandler)
    assert (asked.pair, asked.reason) == (pair_of(2), CancelReason.LEASE_LOST)


def test_a_lost_lease_stops_it_as_any_other_and_leaves_it_to_upkeep() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    begun(script, 1.0, 1)
    script.lose(2.0)
    assert script.only(CancelHandler).reason is CancelReason.LEASE_LOST
    script.finish(3.0, 1, Stopped())
    assert script.sent is None


def test_a_handler_given_up_at_the_end_is_released_unless_it_completed() -> None:
    script = Script(slots=1, options={"patience": 1.0})
    script.start_jobs(0.0, 1)
    begun(script, 1.0, 1)
    script.tell(DrainAsked(2.0, 0.0))
    script.wake(FAR / 2)
    outcome = reported(script)
    assert (outcome.verdict, outcome.in_transaction) == (Verdict.RELEASED, True)


def test_a_row_that_stays_locked_is_asked_for_ever_less_often() -> None:
    script = Script(slots=1, options={"busy_delay": 1.0, "fault_delay_cap": 5.0})
    script.start_jobs(0.0, 1)
    begun(script, 1.0, 1)
    script.finish(2.0, 1)
    at, waits = 2.0, []
    for _ in range(5):
        script.answer(at, answers={1: Answer.BUSY})
        assert script.wake_at is not None
        waits.append(script.wake_at - at)
        at = script.wake_at
        script.wake(at)
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_news_of_a_handler_that_has_ended_is_nothing() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    begun(script, 2.0, 1)
    assert not script.all(CancelHandler)
