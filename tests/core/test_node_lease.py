"""What a node does about its lease, and about what the store lists under it (clauses C5–C8, A3)."""

from tests.core.script import FAR, START, W1, W2, Script, claimed, pair_of, pairs_of, running

from tidemill.core.commands import (
    CancelHandler,
    DoExchange,
    Execute,
    NoticeReleased,
    NoticeStale,
    RegisterAnew,
)
from tidemill.core.events import ExchangeAnswered, Hinted, Listed, Woken
from tidemill.values.endings import CancelReason, Returned, Stopped
from tidemill.values.exchange import Exchanged
from tidemill.values.outcomes import Answer, Verdict

LOST = CancelReason.LEASE_LOST


def cancelled(script: Script, reason: CancelReason = LOST) -> list[int]:
    """The numbers of the jobs whose handlers were just asked to stop."""
    asked = script.all(CancelHandler)
    assert all(command.reason is reason for command in asked)
    return [command.pair.job_id.int for command in asked]


def test_a_lost_lease_stops_its_handlers_and_the_claims() -> None:
    script = Script()
    script.start_jobs(0.0, 1, 2)
    script.lose(1.0)
    assert cancelled(script) == [1, 2]
    script.wake(5.0)
    script.tell(Hinted(6.0))
    assert script.sent is None


def test_handlers_of_a_lost_lease_are_told_once() -> None:
    script = Script()
    script.start_jobs(0.0, 1)
    script.lose(1.0)
    script.lose(1.1)
    assert cancelled(script) == []


def test_handlers_of_a_lost_lease_keep_their_slots_until_they_really_end() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.lose(1.0)
    script.gain(2.0, W2)
    assert script.sent is None
    script.finish(3.0, 1, Stopped())
    sent = script.only(DoExchange)
    assert (sent.worker, sent.outcomes) == (W2, ())
    assert sent.claim is not None
    assert sent.claim.limit == 1


def test_a_handler_that_ends_after_its_lease_was_lost_reports_nothing() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.lose(1.0)
    script.finish(2.0, 1, Returned())
    assert script.sent is None
    assert script.node.busy_slots == 0


def test_outcomes_that_wait_when_the_lease_is_lost_are_offered_once_under_the_old_id() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.fail(1.0)
    script.lose(1.05)
    script.wake(1.5)
    sent = script.only(DoExchange)
    assert (sent.worker, pairs_of(sent.outcomes), sent.claim) == (W1, [pair_of(1)], None)
    script.answer(1.6, answers={1: Answer.STALE}, live=False)
    assert script.only(NoticeStale).worker == W1
    assert not script.all(RegisterAnew)
    script.gain(2.0, W2)
    assert (script.only(DoExchange).worker, script.only(DoExchange).outcomes) == (W2, ())


def test_outcomes_of_two_workers_never_share_an_exchange_nor_a_foreign_claim() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    script.fail(1.0)
    script.lose(1.01)
    script.finish(1.02, 2, Stopped())
    script.gain(1.05, W2)
    script.wake(1.5)
    assert script.only(DoExchange).worker == W1
    assert script.only(DoExchange).claim is None


def test_outcomes_of_an_earlier_worker_never_bring_a_claim_along() -> None:
    script = Script(slots=3)
    script.start_jobs(0.0, 1, 2)
    script.wake(1.0)
    script.finish(1.1, 1)
    script.lose(1.2)
    script.gain(1.3, W2)
    script.answer(1.4)
    sent = script.only(DoExchange)
    assert (sent.worker, pairs_of(sent.outcomes), sent.claim) == (W1, [pair_of(1)], None)


def test_the_loss_of_one_lease_leaves_the_handlers_of_another_alone() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1)
    script.lose(1.0)
    script.gain(2.0, W2)
    script.answer(2.1, claimed(2, worker=W2))
    script.lose(3.0, W1)
    assert cancelled(script) == []
    script.lose(4.0, W2)
    assert cancelled(script) == [2]


def test_a_fresh_lease_has_nothing_to_ask_about() -> None:
    script = Script()
    script.gain()
    script.fail(0.0, unknown=True)
    script.lose(0.05)
    script.gain(0.06, W2)
    script.wake(1.0)
    assert not script.only(DoExchange).list_running


def test_a_reply_of_an_earlier_incarnation_settles_its_outcomes_but_its_jobs_are_dropped() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.lose(1.1)
    script.gain(1.2, W2)
    script.answer(1.3, claimed(2))
    assert not script.all(Execute)
    sent = script.only(DoExchange)
    assert (sent.worker, sent.outcomes) == (W2, ())
    assert sent.claim is not None
    assert sent.claim.limit == 1


def test_the_node_watches_the_end_of_its_lease_by_itself() -> None:
    script = Script(options={"poll_interval": 100.0})
    script.gain(0.0, until=50.0)
    script.answer(0.1, claimed(1))
    assert script.wake_at == 50.0
    script.wake(49.9)
    assert cancelled(script) == []
    script.wake(50.0)
    assert cancelled(script) == [1]
    assert script.only(RegisterAnew).worker == W1
    script.wake(60.0)
    assert not script.all(RegisterAnew)
    assert script.sent is None


def test_an_answered_beat_extends_the_lease() -> None:
    script = Script(options={"poll_interval": 100.0})
    script.gain(0.0, until=50.0)
    script.answer(0.1, claimed(1))
    script.listed(20.0, running(1), until=70.0)
    script.wake(50.0)
    assert script.last == [] or not script.all(CancelHandler)
    script.wake(70.0)
    assert cancelled(script) == [1]


def test_jobs_that_arrive_when_the_lease_cannot_be_trusted_any_more_are_not_started() -> None:
    script = Script()
    script.gain(0.0, until=50.0)
    script.answer(51.0, claimed(1))
    assert not script.all(Execute)
    assert script.only(RegisterAnew).worker == W1


def test_a_beat_answered_while_the_loop_stood_still_counts_for_the_whole_turn() -> None:
    script = Script()
    script.gain(0.0, until=50.0)
    reply = Exchanged(W1, START, live=True, claimed=(claimed(1),))
    beats = [Listed(at, at, W1, (), at + 50.0) for at in (20.0, 40.0, 60.0)]
    script.tell(Woken(70.0), ExchangeAnswered(70.0, reply), *beats)
    assert script.all(Execute)
    assert not script.all(RegisterAnew)


def test_a_reply_that_says_the_lease_is_dead_ends_it_at_once() -> None:
    script = Script()
    script.start_jobs(0.0, 1)
    script.wake(1.0)
    script.answer(1.1, live=False)
    assert cancelled(script) == [1]
    assert script.only(RegisterAnew).worker == W1
    script.tell(Hinted(1.2))
    script.wake(5.0)
    assert script.sent is None, "nothing is claimed until there is a live lease"


def test_an_attempt_that_was_seen_before_is_not_executed_and_ends_the_lease() -> None:
    script = Script()
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.answer(1.1, claimed(2), claimed(1))
    assert not script.all(Execute), "the database went back in time: nothing it says is current"
    assert script.only(RegisterAnew).worker == W1
    assert script.sent is None
    script.gain(2.0, W2)
    assert script.only(DoExchange).worker == W2


def test_the_next_attempt_of_a_job_is_executed() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.answer(1.1, claimed(1, attempt=2))
    assert script.only(Execute).job.attempt == 2


def test_a_pair_that_nobody_holds_is_given_back_on_the_second_beat() -> None:
    script = Script(options={"poll_interval": 1000.0})
    script.gain()
    script.answer(0.1)
    script.listed(20.0, running(7))
    assert script.sent is None
    script.listed(40.0, running(7))
    assert script.all(NoticeReleased) == [NoticeReleased(W1, pair_of(7))]
    (outcome,) = script.only(DoExchange).outcomes
    assert outcome.verdict is Verdict.RELEASED
    script.listed(60.0, running(7))
    assert not script.all(NoticeReleased), "it is on its way"


def test_a_pair_that_was_gone_in_between_starts_over() -> None:
    script = Script()
    script.gain()
    script.answer(0.1)
    script.listed(20.0, running(7))
    script.listed(40.0)
    script.listed(60.0, running(7))
    assert not script.all(NoticeReleased)


def test_a_pair_is_not_given_back_while_the_same_exchange_may_be_bringing_it() -> None:
    script = Script()
    script.gain()
    script.listed(20.0, running(7))
    script.listed(40.0, running(7))
    assert not script.all(NoticeReleased)
    script.answer(41.0, claimed(7))
    assert script.only(Execute).job == claimed(7)
    script.listed(60.0, running(7))
    assert not script.all(NoticeReleased)


def test_a_pair_is_given_back_when_the_exchange_that_could_bring_it_has_failed() -> None:
    script = Script()
    script.gain()
    script.listed(20.0, running(7))
    script.fail(21.0, unknown=True)
    script.wake(22.0)
    assert script.sent is not None
    script.listed(40.0, running(7))
    assert script.all(NoticeReleased)


def test_listings_that_lay_unread_do_not_give_back_what_ended_meanwhile() -> None:
    script = Script(slots=1, options={"poll_interval": 100.0})
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.answer(50.0)
    script.listed(50.0, running(1), sent_at=20.0)
    script.listed(50.0, running(1), sent_at=40.0)
    assert not script.all(NoticeReleased)


def test_an_earlier_workers_listing_is_ignored() -> None:
    script = Script()
    script.start_jobs(0.0, 1)
    script.listed(20.0, worker=W2, until=5.0)
    assert script.all(CancelHandler) == []


def test_a_new_lease_starts_with_no_sightings() -> None:
    script = Script()
    script.gain()
    script.listed(20.0, running(7))
    script.lose(21.0)
    script.gain(22.0, W2)
    script.listed(40.0, running(7), worker=W2)
    assert not script.all(NoticeReleased)


def test_outcomes_on_their_way_are_held() -> None:
    script = Script(slots=1, options={"busy_delay": 1000.0})
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    for at in (20.0, 40.0):
        script.listed(at, running(1))
        assert not script.all(NoticeReleased)
    script.answer(50.0, answers={1: Answer.BUSY})
    for at in (60.0, 80.0):
        script.listed(at, running(1))
        assert not script.all(NoticeReleased)


def test_a_pair_that_is_held_and_not_listed_is_cancelled_as_lease_lost() -> None:
    script = Script()
    script.start_jobs(0.0, 1, 2)
    script.listed(20.0, running(2))
    assert cancelled(script) == [1]
    script.listed(40.0, running(2))
    assert cancelled(script) == []


def test_a_pair_that_was_claimed_after_the_beat_was_sent_is_left_alone() -> None:
    script = Script()
    script.gain()
    script.answer(19.5, claimed(1))
    script.listed(20.0, sent_at=19.0)
    assert cancelled(script) == []
    script.listed(40.0, sent_at=39.0)
    assert cancelled(script) == [1]


def test_the_listing_of_an_exchange_says_nothing_about_the_jobs_that_it_brings() -> None:
    script = Script()
    script.gain()
    script.fail(0.0, unknown=True)
    script.wake(1.0)
    script.answer(1.1, claimed(1), listing=())
    assert script.all(Execute)
    assert cancelled(script) == []


def test_an_operators_cancel_is_heard_with_a_listing_and_told_once() -> None:
    script = Script()
    script.start_jobs(0.0, 1, 2)
    listing = (running(1, cancel="ann"), running(2))
    script.listed(20.0, *listing)
    assert cancelled(script, CancelReason.OPERATOR) == [1]
    script.listed(40.0, *listing)
    assert cancelled(script) == []


def test_the_answer_to_a_claim_without_end_does_not_keep_a_lost_lease_alive() -> None:
    script = Script()
    script.gain(0.0, until=50.0)
    script.wake(50.0)
    assert script.only(RegisterAnew).worker == W1
    script.gain(51.0, W2, until=FAR)
    assert not script.all(DoExchange), "the exchange in flight may still be answered"
    script.answer(52.0, claimed(1))
    assert not script.all(Execute)
    assert script.only(DoExchange).worker == W2
