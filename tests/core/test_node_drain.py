"""How a node ends: finish, cancel, give back, give up; exactly once (clause G3)."""

import pytest
from tests.core.script import FAR, Script, claimed, pair_of, pairs_of, running

from tidemill.core.commands import (
    CancelHandler,
    DoExchange,
    DoMaintain,
    Drained,
    Execute,
    NoticeReleased,
    RegisterAnew,
)
from tidemill.core.drain import Drain, Phase
from tidemill.core.events import DrainAsked, Hinted, HurryAsked
from tidemill.values.endings import CancelReason, Returned, Stopped
from tidemill.values.outcomes import Answer, Verdict

OPTIONS = {"patience": 5.0, "flush": 10.0}


def drained(script: Script) -> list[int]:
    return [command.unreported for command in script.log if isinstance(command, Drained)]


def test_an_idle_node_ends_at_once() -> None:
    script = Script()
    script.gain()
    script.answer(0.1)
    script.tell(DrainAsked(1.0, 30.0))
    assert script.last == [Drained(0)]


def test_a_node_without_a_lease_ends_at_once() -> None:
    script = Script()
    script.tell(DrainAsked(1.0, 30.0))
    assert script.last == [Drained(0)]


def test_handlers_may_finish_within_the_grace_period() -> None:
    script = Script(slots=2, options=OPTIONS)
    script.start_jobs(0.0, 1, 2)
    script.tell(DrainAsked(1.0, 30.0))
    assert script.wake_at == 31.0
    script.finish(20.0, 1)
    sent = script.only(DoExchange)
    assert (pairs_of(sent.outcomes), sent.claim) == ([pair_of(1)], None)
    script.finish(21.0, 2)
    script.answer(22.0)
    assert not drained(script)
    script.answer(23.0)
    assert script.last == [Drained(0)]


def test_nothing_is_claimed_and_no_upkeep_done_after_the_end_was_asked_for() -> None:
    script = Script(slots=2, upkeep=True)
    script.start_jobs(0.0, 1)
    script.maintained(0.1, None)
    script.tell(DrainAsked(1.0, 30.0))
    for at in (2.0, 3.0, 4.0):
        script.tell(Hinted(at))
        script.wake(at + 0.5)
    script.finish(5.0, 1)
    assert all(
        command.claim is None for command in script.log[3:] if isinstance(command, DoExchange)
    )
    assert sum(isinstance(command, DoMaintain) for command in script.log) == 1


def test_after_the_grace_period_handlers_are_cancelled_with_reason_shutdown() -> None:
    script = Script(slots=2, options=OPTIONS)
    script.start_jobs(0.0, 1, 2)
    script.tell(DrainAsked(1.0, 30.0))
    script.wake(31.0)
    asked = script.all(CancelHandler)
    assert [(c.pair, c.reason) for c in asked] == [
        (pair_of(1), CancelReason.SHUTDOWN),
        (pair_of(2), CancelReason.SHUTDOWN),
    ]
    assert script.wake_at == 36.0
    script.finish(32.0, 1, Stopped())
    assert script.only(DoExchange).outcomes[0].verdict is Verdict.RELEASED
    script.finish(33.0, 2, Returned())
    script.answer(34.0)
    assert script.only(DoExchange).outcomes[0].verdict is Verdict.SUCCEEDED
    script.answer(35.0)
    assert drained(script) == [0]


def test_without_grace_handlers_are_cancelled_at_once() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 0.0))
    assert script.only(CancelHandler).reason is CancelReason.SHUTDOWN


def test_a_handler_that_ignores_the_shutdown_for_too_long_is_given_back() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 0.0))
    script.wake(6.0)
    (outcome,) = script.only(DoExchange).outcomes
    assert outcome.verdict is Verdict.RELEASED
    script.finish(6.5, 1, Returned())
    script.answer(7.0)
    assert drained(script) == [0], "its late end is ignored, and not waited for"


def test_a_handler_of_a_lost_lease_is_waited_for_and_then_left() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.lose(0.5)
    script.tell(DrainAsked(1.0, 2.0))
    assert not drained(script)
    script.wake(3.0)
    assert not script.all(CancelHandler), "it was told a stronger reason before"
    script.wake(8.0)
    assert script.last == [Drained(0)]


def test_jobs_that_arrive_after_the_end_was_asked_for_are_given_back_at_once() -> None:
    script = Script(slots=2, options=OPTIONS)
    script.gain()
    script.tell(DrainAsked(0.5, 30.0))
    assert not drained(script), "a claim is in flight: what it brings is not stranded"
    script.answer(0.6, claimed(1), claimed(2))
    assert not script.all(Execute)
    sent = script.only(DoExchange)
    assert [o.verdict for o in sent.outcomes] == [Verdict.RELEASED, Verdict.RELEASED]
    script.answer(0.7)
    assert drained(script) == [0]


def test_a_claim_that_fails_during_the_end_is_not_waited_for() -> None:
    script = Script()
    script.gain()
    script.tell(DrainAsked(0.5, 30.0))
    script.fail(0.6)
    assert drained(script) == [0]


def test_a_pair_that_nobody_holds_is_given_back_during_the_end_too() -> None:
    script = Script(slots=2, options=OPTIONS)
    script.start_jobs(0.0, 1, 2)
    script.tell(DrainAsked(1.0, 100.0))
    script.listed(20.0, running(1), running(2), running(7))
    script.listed(40.0, running(1), running(2), running(7))
    assert script.all(NoticeReleased)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(7)]


def test_outcomes_that_the_store_will_not_take_are_given_up_with_their_count() -> None:
    script = Script(slots=3, options=OPTIONS)
    script.start_jobs(0.0, 1, 2, 3)
    script.tell(DrainAsked(1.0, 0.0))
    script.finish(2.0, 1)
    script.fail(2.0)
    script.wake(6.0)
    at = 6.0
    while not drained(script):
        assert script.wake_at is not None
        at = max(at, script.wake_at)
        script.wake(at)
        if script.sent is not None:
            script.fail(at)
    assert at == 16.0
    assert drained(script) == [3]


def test_outcomes_in_flight_count_as_unreported() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.tell(DrainAsked(1.0, 0.0))
    script.wake(6.0)
    script.wake(16.0)
    assert script.last == [Drained(1)]


def test_a_busy_outcome_is_waited_for() -> None:
    script = Script(slots=1, options={**OPTIONS, "busy_delay": 0.5})
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(0.5, 30.0))
    script.finish(1.0, 1)
    script.answer(1.1, answers={1: Answer.BUSY})
    assert not drained(script)
    script.wake(1.6)
    script.answer(1.7)
    assert drained(script) == [0]


def test_hurrying_ends_the_grace_period() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 1000.0))
    script.tell(HurryAsked(2.0))
    assert script.only(CancelHandler).reason is CancelReason.SHUTDOWN
    assert script.wake_at == 7.0
    script.tell(HurryAsked(3.0))
    assert script.only(DoExchange).outcomes[0].verdict is Verdict.RELEASED
    script.tell(HurryAsked(4.0))
    assert script.last == [Drained(1)]


def test_hurrying_alone_starts_the_end() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(HurryAsked(2.0))
    assert script.only(CancelHandler).reason is CancelReason.SHUTDOWN
    assert script.node.draining


def test_asking_again_changes_nothing() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 30.0))
    script.tell(DrainAsked(20.0, 30.0))
    assert script.wake_at == 31.0


def test_the_end_is_told_once_and_is_silent_afterwards() -> None:
    script = Script(slots=2, options=OPTIONS)
    script.start_jobs(0.0, 1)
    script.wake(1.0)
    assert script.sent is not None
    script.tell(DrainAsked(1.5, 0.0))
    script.tell(HurryAsked(2.0))
    script.tell(HurryAsked(3.0))
    assert drained(script) == [1]
    assert script.answer(4.0, claimed(2)) == []
    assert script.finish(5.0, 1) == []
    assert script.tell(HurryAsked(6.0)) == []
    assert script.tell(DrainAsked(7.0, 1.0)) == []
    assert script.wake(FAR) == [], "not even the end of the lease matters now"
    assert script.lose(FAR) == []


def test_a_lease_that_ends_during_the_end_is_still_watched() -> None:
    script = Script(slots=1, options=OPTIONS)
    script.gain(0.0, until=50.0)
    script.answer(0.1, claimed(1))
    script.tell(DrainAsked(1.0, 1000.0))
    assert script.wake_at == 50.0
    script.wake(50.0)
    assert script.only(RegisterAnew)
    assert script.only(CancelHandler).reason is CancelReason.LEASE_LOST
    script.finish(51.0, 1, Stopped())
    assert drained(script) == [0]


def test_a_phase_without_length_is_passed_through_and_not_waited_for_in_vain() -> None:
    script = Script(slots=1, options={"patience": 0.0, "flush": 0.0})
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 0.0))
    for _ in range(3):
        if not drained(script):
            assert script.wake_at == 1.0
            script.wake(1.0)
    assert drained(script) == [1]


def test_the_phases_follow_each_other_and_end() -> None:
    drain = Drain(patience=5.0, flush=10.0)
    assert drain.advance(1e6) is None
    drain.ask(0.0, 3.0)
    assert drain.advance(2.9) is None
    assert drain.advance(3.0) is Phase.CANCELLING
    assert drain.advance(8.0) is Phase.FLUSHING
    assert drain.advance(18.0) is Phase.ENDED
    drain.hurry(19.0)
    assert drain.over_at == float("inf"), "there is nothing to be woken for any more"
    assert drain.advance(20.0) is None


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [("timeout", Verdict.FAILED), ("operator", Verdict.CANCELLED), (None, Verdict.RELEASED)],
)
def test_what_ignores_its_stop_is_reported_for_the_reason_it_was_given(reason, verdict) -> None:
    script = Script(options={"patience": 2.0})
    script.start_jobs(0.0, claimed(1, timeout=0.5 if reason == "timeout" else None))
    script.wake(0.5)
    if reason == "operator":
        script.listed(0.6, running(1, cancel="ada"))
    script.tell(DrainAsked(1.0, grace=0.0))
    script.wake(1.0)
    script.wake(3.0)
    (outcome,) = script.only(DoExchange).outcomes
    assert outcome.verdict is verdict
