"""Why handlers are stopped, and what their end is reported as (clauses E3, G2, G3)."""

from datetime import timedelta

import pytest
from tests.core.script import Script, claimed, running

from tidemill.core.commands import CancelHandler, DoExchange, Drained
from tidemill.core.deadlines import Deadlines
from tidemill.core.endings import STOPPED_UNASKED, TIMED_OUT
from tidemill.core.events import DrainAsked
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

BROKEN = ErrorInfo("app.Broken", "it broke")
RAISED = Raised(BROKEN, timedelta(seconds=7))
DISCARDED = Discarded(BROKEN)
SNOOZED = Snoozed(timedelta(seconds=9))
LOST_ITS_WAY = Unroutable("no-handler", BROKEN)
RETURNED = Returned(b"1")
STOPPED = Stopped()


def ended(reason: CancelReason | None, ending: Ending) -> Outcome | None:
    """The outcome of one attempt that was asked to stop for this reason, then ended so."""
    script = Script(slots=1)
    script.start_jobs(0.0, claimed(1, timeout=30.0))
    if reason is CancelReason.OPERATOR:
        script.listed(1.0, running(1, cancel="ann"))
    elif reason is CancelReason.TIMEOUT:
        script.wake(30.0)
    elif reason is CancelReason.SHUTDOWN:
        script.tell(DrainAsked(1.0, 0.0))
    elif reason is CancelReason.LEASE_LOST:
        script.lose(1.0)
    assert [command.reason for command in script.all(CancelHandler)] == ([reason] if reason else [])
    script.finish(31.0, 1, ending)
    sent = script.sent
    return sent.outcomes[0] if sent is not None else None


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (RETURNED, Verdict.SUCCEEDED),
        (RAISED, Verdict.FAILED),
        (DISCARDED, Verdict.DISCARDED),
        (SNOOZED, Verdict.SNOOZED),
        (LOST_ITS_WAY, Verdict.UNROUTABLE),
        (STOPPED, Verdict.FAILED),
    ],
)
def test_an_end_that_nobody_asked_for_is_reported_as_it_is(
    ending: Ending, verdict: Verdict
) -> None:
    outcome = ended(None, ending)
    assert outcome is not None
    assert outcome.verdict is verdict
    assert outcome.output == (b"1" if ending is RETURNED else None)
    if ending is RAISED:
        assert (outcome.error, outcome.delay) == (BROKEN, timedelta(seconds=7))
    elif ending is SNOOZED:
        assert outcome.delay == timedelta(seconds=9)
    elif ending is LOST_ITS_WAY:
        assert (outcome.cause, outcome.error) == ("no-handler", BROKEN)
    elif ending is STOPPED:
        assert outcome.error is not None
        assert outcome.error.kind == STOPPED_UNASKED


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (RETURNED, Verdict.SUCCEEDED),
        (RAISED, Verdict.FAILED),
        (DISCARDED, Verdict.DISCARDED),
        (SNOOZED, Verdict.SNOOZED),
        (STOPPED, Verdict.CANCELLED),
    ],
)
def test_after_an_operators_cancel_the_store_makes_every_end_but_a_success_cancelled(
    ending: Ending, verdict: Verdict
) -> None:
    outcome = ended(CancelReason.OPERATOR, ending)
    assert outcome is not None
    assert outcome.verdict is verdict


@pytest.mark.parametrize("ending", [RAISED, DISCARDED, SNOOZED, STOPPED])
def test_after_a_shutdown_every_end_but_a_success_is_released(ending: Ending) -> None:
    outcome = ended(CancelReason.SHUTDOWN, ending)
    assert outcome is not None
    assert outcome.verdict is Verdict.RELEASED


@pytest.mark.parametrize("ending", [RAISED, DISCARDED, SNOOZED, STOPPED])
def test_after_a_timeout_every_end_but_a_success_is_a_failure(ending: Ending) -> None:
    outcome = ended(CancelReason.TIMEOUT, ending)
    assert outcome is not None
    assert outcome.verdict is Verdict.FAILED
    assert outcome.error is not None
    assert outcome.error.kind == TIMED_OUT


@pytest.mark.parametrize("reason", [CancelReason.SHUTDOWN, CancelReason.TIMEOUT])
def test_a_handler_that_finishes_first_still_succeeds(reason: CancelReason) -> None:
    outcome = ended(reason, RETURNED)
    assert outcome is not None
    assert outcome.verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize("ending", [RETURNED, RAISED, DISCARDED, SNOOZED, LOST_ITS_WAY, STOPPED])
def test_after_a_lost_lease_no_end_is_reported(ending: Ending) -> None:
    assert ended(CancelReason.LEASE_LOST, ending) is None


def test_a_timeout_is_told_once() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, claimed(1, timeout=5.0))
    assert script.wake_at == 5.0
    script.wake(4.9)
    assert not script.all(CancelHandler)
    script.wake(5.0)
    assert script.only(CancelHandler).reason is CancelReason.TIMEOUT
    script.wake(6.0)
    assert not script.all(CancelHandler)


def test_a_handler_that_ended_has_no_timeout_any_more() -> None:
    script = Script(slots=1, options={"poll_interval": 50.0})
    script.start_jobs(0.0, claimed(1, timeout=5.0))
    script.finish(1.0, 1)
    script.answer(1.5)
    assert script.wake_at == 51.5


def test_the_first_reason_stands() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, claimed(1, timeout=5.0))
    script.wake(5.0)
    script.listed(6.0, running(1, cancel="ann"))
    assert not script.all(CancelHandler)
    script.tell(DrainAsked(7.0, 0.0))
    assert not script.all(CancelHandler)
    script.finish(8.0, 1, STOPPED)
    assert script.only(DoExchange).outcomes[0].error is not None


@pytest.mark.parametrize("first", ["operator", "timeout", "shutdown"])
def test_a_lost_lease_overrides_every_other_reason(first: str) -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, claimed(1, timeout=5.0))
    if first == "operator":
        script.listed(1.0, running(1, cancel="ann"))
    elif first == "timeout":
        script.wake(5.0)
    else:
        script.tell(DrainAsked(1.0, 0.0))
    assert script.all(CancelHandler)
    script.lose(5.5)
    assert script.only(CancelHandler).reason is CancelReason.LEASE_LOST
    script.finish(5.6, 1, RETURNED)
    assert script.sent is None
    assert bool(script.all(Drained)) is (first == "shutdown")


def test_deadlines_come_out_earliest_first_and_once() -> None:
    deadlines = Deadlines[str]()
    assert deadlines.next == float("inf")
    for key, at in (("c", 3.0), ("a", 1.0), ("b", 1.0), ("d", 4.0)):
        deadlines.add(key, at)
    deadlines.drop("c")
    deadlines.drop("unknown")
    assert list(deadlines.due(0.5)) == []
    assert list(deadlines.due(3.5)) == ["a", "b"]
    assert deadlines.next == 4.0
    assert list(deadlines.due(9.0)) == ["d"]
    assert list(deadlines.due(9.0)) == []


def test_deadlines_follow_the_last_wish() -> None:
    deadlines = Deadlines[str]()
    deadlines.add("a", 1.0)
    deadlines.add("a", 5.0)
    assert deadlines.next == 5.0
    assert list(deadlines.due(2.0)) == []
    assert list(deadlines.due(5.0)) == ["a"]


def test_the_memory_of_dropped_deadlines_is_bounded() -> None:
    deadlines = Deadlines[int]()
    for key in range(10_000):
        deadlines.add(key, 1e6)
        deadlines.drop(key)
    assert len(deadlines._heap) < 200


@pytest.mark.parametrize("keep", [True, False])
def test_a_traceback_is_reported_only_if_it_is_to_be_kept(keep) -> None:
    script = Script(options={"keep_tracebacks": keep})
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1, Raised(ErrorInfo("KeyError", "'flour'", "line 1\nline 2")))
    (outcome,) = script.only(DoExchange).outcomes
    assert outcome.error == ErrorInfo("KeyError", "'flour'", "line 1\nline 2" if keep else "")
