"""What a node does about a store that fails, refuses or keeps silent (clauses D4–D6, M3)."""

import pytest
from tests.core.script import FAR, W1, W2, Script, claimed, pair_of, pairs_of, running

from tidemill.core.commands import (
    DoExchange,
    NoticeDegraded,
    NoticeDropped,
    NoticeRecovered,
    NoticeReleased,
    NoticeStale,
)
from tidemill.core.events import Finished, Hinted
from tidemill.core.pacing import Pacing
from tidemill.core.storable import OUTCOME_REFUSED, barest
from tidemill.values.endings import Returned
from tidemill.values.leases import Maintained
from tidemill.values.outcomes import Answer, Outcome, Verdict


def woken(script: Script) -> float:
    """Wake the node when it asks for it; answer when that was."""
    assert script.wake_at is not None
    at = script.wake_at
    script.wake(at)
    return at


def with_outcomes(*numbers: int, slots: int | None = None) -> Script:
    """A script in which these outcomes wait, a fused exchange has just failed, and no more."""
    script = Script(slots=slots or len(numbers))
    script.start_jobs(0.0, *numbers)
    script.tell(*(Finished(1.0, W1, pair_of(number), Returned()) for number in numbers))
    script.fail(1.0)
    return script


def test_after_a_fault_outcomes_go_alone_then_the_claim_then_both_together() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    assert script.sent is not None
    assert script.sent.claim is not None
    script.fail(1.0)
    woken(script)
    alone = script.only(DoExchange)
    assert (pairs_of(alone.outcomes), alone.claim) == ([pair_of(1)], None)
    script.finish(1.5, 2)
    script.answer(1.6)
    claim = script.only(DoExchange)
    assert (claim.outcomes, claim.claim is not None) == ((), True)
    script.answer(1.7, claimed(3))
    both = script.only(DoExchange)
    assert (pairs_of(both.outcomes), both.claim is not None) == ([pair_of(2)], True)


def test_a_claim_is_not_in_the_way_of_outcomes_when_no_slot_is_free() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.fail(1.0)
    woken(script)
    script.fail(1.2)
    at = woken(script)
    sent = script.only(DoExchange)
    assert (pairs_of(sent.outcomes), sent.claim) == ([pair_of(1)], None)
    script.answer(at)
    assert script.only(DoExchange).claim is not None
    script.answer(at + 1, claimed(2))
    script.finish(at + 2, 2)
    both = script.only(DoExchange)
    assert (pairs_of(both.outcomes), both.claim is not None) == ([pair_of(2)], True)


def test_outcomes_that_always_fail_do_not_keep_the_node_from_claiming() -> None:
    script = with_outcomes(1, slots=2)
    at, claims = 1.0, 0
    for _ in range(6):
        at = max(woken(script), at)
        sent = script.only(DoExchange)
        if sent.claim is not None:
            assert not sent.outcomes
            claims += 1
        script.fail(at)
    assert claims == 3


def test_a_claim_that_always_fails_does_not_keep_outcomes_from_being_recorded() -> None:
    script = with_outcomes(1, 2, slots=3)
    recorded = []
    for at in range(2, 30):
        if script.sent is None:
            script.wake(float(at))
        elif script.sent.claim is None:
            recorded += pairs_of(script.sent.outcomes)
            script.answer(float(at))
        else:
            script.fail(float(at))
    assert recorded == [pair_of(1), pair_of(2)]


def test_the_back_off_grows_and_is_bounded() -> None:
    script = Script()
    script.gain()
    waits = []
    at = 0.0
    for _ in range(12):
        script.fail(at)
        assert script.wake_at is not None
        waits.append(script.wake_at - at)
        at = woken(script)
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 5, 5])


def test_an_outage_may_last_for_thousands_of_tries() -> None:
    pacing = Pacing(poll_interval=1.0, listen_interval=1.0, first_delay=0.1, longest_delay=5.0)
    for at in range(5_000):
        pacing.failed(float(at), outcomes=False)
    assert pacing.resume_at == 4_999 + 5.0


def test_hints_do_not_shorten_the_back_off() -> None:
    script = Script()
    script.gain()
    script.fail(0.0)
    script.tell(Hinted(0.05))
    assert script.sent is None
    woken(script)
    assert script.sent is not None


def test_the_wait_is_short_again_after_an_answer() -> None:
    script = Script()
    script.gain()
    for _ in range(5):
        script.fail(0.0)
        woken(script)
    script.answer(10.0)
    script.wake(11.0)
    script.fail(11.0)
    assert script.wake_at == pytest.approx(11.1)


def test_degraded_and_recovered_are_told_once_each() -> None:
    script = Script()
    script.gain()
    for _ in range(4):
        script.fail(0.0, why="connection refused")
        woken(script)
    script.answer(20.0)
    woken(script)
    script.answer(22.0)
    told = [c for c in script.log if isinstance(c, NoticeDegraded | NoticeRecovered)]
    assert told == [NoticeDegraded("connection refused"), NoticeRecovered()]


def test_an_unknown_answer_has_the_next_exchange_ask_what_runs() -> None:
    script = Script()
    script.gain()
    script.fail(0.0, unknown=True)
    woken(script)
    assert script.only(DoExchange).list_running
    script.answer(1.0, listing=())
    woken(script)
    assert not script.only(DoExchange).list_running


def test_a_known_failure_asks_nothing() -> None:
    script = Script()
    script.gain()
    script.fail(0.0)
    woken(script)
    assert not script.only(DoExchange).list_running


def test_the_question_stays_open_until_the_present_worker_is_answered() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.lose(1.1)
    script.gain(1.2, W2)
    script.fail(1.3, unknown=True)
    woken(script)
    assert script.only(DoExchange).worker == W1
    script.answer(1.5, listing=(running(7),))
    assert not script.all(NoticeReleased)
    assert script.only(DoExchange).worker == W2
    assert script.only(DoExchange).list_running


def test_a_claim_whose_answer_was_lost_is_given_back_within_two_listings() -> None:
    script = Script(options={"poll_interval": 50.0})
    script.gain()
    script.fail(0.0, unknown=True)
    woken(script)
    script.answer(1.0, listing=(running(7),))
    assert not script.all(NoticeReleased)
    script.listed(20.0, running(7))
    assert script.all(NoticeReleased) == [NoticeReleased(W1, pair_of(7))]
    (released,) = script.only(DoExchange).outcomes
    assert released == Outcome(**pair_of(7)._asdict(), verdict=Verdict.RELEASED)


def test_a_refused_batch_is_halved_until_the_guilty_one_is_alone() -> None:
    script = Script(slots=8, upkeep=True)
    script.start_jobs(0.0, *range(1, 9))
    script.finish(1.0, 1)
    for number in range(2, 9):
        script.finish(1.0, number)
    script.answer(1.0, answers={1: Answer.APPLIED})
    recorded, notices = [pair_of(1)], []
    at, guilty = 1.0, pair_of(6)
    for _ in range(60):
        at += 1.0
        if script.sent is None:
            script.wake(at)
        elif guilty in pairs_of(script.sent.outcomes):
            script.fail(at, refused=True, why="the store cannot hold it")
        else:
            recorded += pairs_of(script.sent.outcomes)
            script.answer(at)
        notices += script.all(NoticeDropped)
    assert sorted(recorded) == [pair_of(n) for n in (1, 2, 3, 4, 5, 7, 8)]
    assert notices == [NoticeDropped(W1, guilty, "the store cannot hold it")]
    assert not script.node._holdings.pending


def test_the_bare_record_is_offered_before_an_outcome_is_given_up() -> None:
    script = with_outcomes(1)
    woken(script)
    assert script.only(DoExchange).claim is None
    script.fail(2.0, refused=True)
    (offered,) = script.only(DoExchange).outcomes
    assert (offered.verdict, offered.error and offered.error.kind) == (
        Verdict.FAILED,
        OUTCOME_REFUSED,
    )
    script.answer(2.1)
    assert not [c for c in script.log if isinstance(c, NoticeDropped)]


def test_a_refused_batch_is_halved_without_waiting_and_is_no_outage() -> None:
    script = with_outcomes(1, 2, 3, 4)
    woken(script)
    script.fail(9.0, refused=True)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(1), pair_of(2)]
    assert not script.all(NoticeDegraded)


def test_a_store_that_refuses_everything_does_not_make_the_node_drop_finished_work() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    script.finish(1.0, 2)
    at = 1.0
    for _ in range(200):
        at = max(at, script.wake_at or 0.0) if script.sent is None else at
        if script.sent is None:
            script.wake(at)
        else:
            script.fail(at, refused=True)
    assert not [c for c in script.log if isinstance(c, NoticeDropped)]
    assert len(script.node._holdings.pending) + len(script.node._holdings.travelling) == 2
    assert at > 100.0, "and it does not spin"


def test_an_outcome_that_is_refused_when_all_slots_wait_is_dropped_once_upkeep_was_answered() -> (
    None
):
    script = Script(slots=1, upkeep=True)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    for _ in range(3):
        script.fail(1.0, refused=True)
    assert script.sent is None
    script.maintained(2.0, Maintained())
    woken(script)
    script.wake(6.0)
    script.fail(6.0, refused=True)
    assert not script.all(NoticeDropped)
    (offered,) = script.only(DoExchange).outcomes
    assert offered == barest(offered), "in words that every database can hold"
    script.maintained(7.0, Maintained())
    script.fail(8.0, refused=True)
    assert script.all(NoticeDropped)
    assert script.only(DoExchange).claim is not None


def test_an_attempt_whose_end_could_not_be_recorded_is_offered_as_failed_and_never_given_back() -> (
    None
):
    """Given back it would cost its job nothing, and be run for ever (D6, E2)."""
    script = Script(slots=2, upkeep=True)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    at = 1.0
    while not [c for c in script.log if isinstance(c, NoticeDropped)]:
        at += 1.0
        if script.sent is None:
            script.wake(at)
        elif script.sent.outcomes:
            script.fail(at, refused=True)
        else:
            script.answer(at)
    offered = []
    for _ in range(60):
        at += 1.0
        script.listed(at, running(1))
        if script.sent is None:
            script.wake(at)
            continue
        offered += script.sent.outcomes
        if offered:
            break
        script.answer(at)
    assert [(each.verdict, each.error and each.error.kind) for each in offered] == [
        (Verdict.FAILED, OUTCOME_REFUSED)
    ]
    assert not [c for c in script.log if isinstance(c, NoticeReleased)]


def test_a_refused_claim_waits_like_any_fault() -> None:
    script = Script()
    script.gain()
    script.fail(0.0, refused=True, why="no such queue")
    assert script.all(NoticeDegraded)
    assert script.sent is None
    assert script.wake_at == pytest.approx(0.1)


def test_a_batch_that_is_too_much_for_the_store_is_halved_too() -> None:
    script = with_outcomes(1, 2, 3, 4)
    woken(script)
    sizes = []
    for at in range(2, 30):
        if script.sent is None:
            woken(script)
        elif len(script.sent.outcomes) > 1:
            sizes.append(len(script.sent.outcomes))
            script.fail(float(at), why="statement time-out")
        else:
            script.answer(float(at))
    assert sizes[:2] == [4, 2]
    assert not script.node._holdings.pending


def test_batches_grow_back_only_when_outcomes_were_taken() -> None:
    script = with_outcomes(1, 2, 3, 4)
    woken(script)
    script.fail(2.0)
    woken(script)
    assert script.node._exchanges._batching.limit == 2
    script.answer(3.0)
    assert script.node._exchanges._batching.limit == 4


def test_an_outcome_that_fails_alone_lets_the_others_go_first() -> None:
    script = Script(slots=2, options={"outcome_batch": 1})
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    script.finish(1.0, 2)
    script.fail(1.0)
    woken(script)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(2)]


def test_a_busy_outcome_is_offered_again_alone_and_later() -> None:
    script = Script(slots=3, options={"busy_delay": 0.5, "poll_interval": 50.0})
    script.start_jobs(0.0, 1, 2, 3)
    script.finish(1.0, 1)
    script.answer(1.0, answers={1: Answer.BUSY})
    script.finish(1.2, 2)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(2)]
    script.answer(1.3)
    assert script.wake_at == 1.5
    script.wake(1.5)
    script.finish(1.5, 3)
    assert script.sent is not None
    assert (pairs_of(script.sent.outcomes), script.sent.claim) == ([pair_of(1)], None)
    script.answer(1.6)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(3)]


@pytest.mark.parametrize("answer", [Answer.ALREADY_APPLIED, Answer.SUPERSEDED, Answer.GONE])
def test_an_outcome_that_is_known_to_be_settled_is_done_with(answer: Answer) -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.answer(1.1, answers={1: answer})
    assert not script.all(NoticeStale)
    assert script.node._holdings.free == 1


def test_a_stale_report_is_told_and_done_with() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.answer(1.1, answers={1: Answer.STALE})
    assert script.only(NoticeStale).worker == W1
    assert script.node._holdings.free == 1


def test_the_lease_outlives_a_fault_of_the_exchange() -> None:
    script = Script()
    script.gain(until=FAR)
    script.fail(0.0)
    woken(script)
    assert script.only(DoExchange).worker == W1
