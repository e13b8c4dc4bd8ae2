"""What a node claims, when, and for how many slots (clauses C4, J5; backpressure)."""

from tests.core.script import START, W1, Script, claimed, pair_of, pairs_of

from tidemill.core.commands import DoExchange, DoMaintain, Execute, NoticeLapsed
from tidemill.core.events import ExchangeAnswered, Finished, Hinted
from tidemill.values.endings import Returned
from tidemill.values.exchange import Exchanged, Share
from tidemill.values.leases import Lapsed, Maintained
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.states import JobState


def limit_of(exchange: DoExchange) -> int:
    return exchange.claim.limit if exchange.claim else 0


def test_nothing_is_claimed_without_a_lease() -> None:
    script = Script()
    assert script.tell(Hinted(0.0)) == []
    assert script.wake(5.0) == []
    script.gain(6.0)
    assert limit_of(script.only(DoExchange)) == 4


def test_a_lease_that_is_gained_too_late_to_be_trusted_claims_nothing() -> None:
    script = Script()
    script.gain(10.0, until=10.0)
    assert script.sent is None


def test_one_exchange_is_in_flight_and_what_finishes_meanwhile_goes_out_together() -> None:
    script = Script(slots=4)
    script.start_jobs(0.0, 1, 2, 3)
    script.wake(1.0)
    assert limit_of(script.only(DoExchange)) == 1
    assert script.finish(1.1, 1) == []
    assert script.finish(1.2, 2) == []
    assert script.finish(1.3, 3) == []
    script.answer(1.4)
    sent = script.only(DoExchange)
    assert pairs_of(sent.outcomes) == [pair_of(1), pair_of(2), pair_of(3)]
    assert limit_of(sent) == 4


def test_events_of_one_turn_share_one_exchange() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.tell(
        Finished(1.0, W1, pair_of(1), Returned()), Finished(1.0, W1, pair_of(2), Returned())
    )
    assert len(script.only(DoExchange).outcomes) == 2


def test_a_claim_reserves_its_slots_until_it_is_answered() -> None:
    script = Script(slots=3, options={"claim_batch": 2})
    script.gain()
    assert limit_of(script.only(DoExchange)) == 2
    assert script.node._holdings.free == 1
    script.answer(0.1, claimed(1), claimed(2))
    assert limit_of(script.only(DoExchange)) == 1


def test_a_fused_exchange_claims_for_the_slots_its_outcomes_free_and_no_more() -> None:
    script = Script(slots=3)
    script.start_jobs(0.0, 1, 2, 3)
    assert script.sent is None
    script.finish(1.0, 1)
    assert limit_of(script.only(DoExchange)) == 1
    script.finish(1.1, 2)
    script.answer(1.2, claimed(4))
    assert limit_of(script.only(DoExchange)) == 1


def test_an_outcome_holds_its_slot_until_it_is_durable() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.fail(1.1)
    script.wake(1.25)
    sent = script.only(DoExchange)
    assert (pairs_of(sent.outcomes), sent.claim) == ([pair_of(1)], None)
    script.answer(1.3)
    assert limit_of(script.only(DoExchange)) == 1


def test_an_outcome_whose_row_is_busy_keeps_its_slot() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    script.answer(1.1, claimed(3), answers={1: Answer.BUSY})
    script.tell(Hinted(1.12))
    assert script.only(DoExchange).claim is None, "two handlers run, an outcome waits: no free slot"
    assert script.node.busy_slots == 2


def test_a_full_claim_polls_again_at_once_if_slots_are_left() -> None:
    script = Script(slots=4, options={"claim_batch": 2})
    script.gain()
    script.answer(0.5, claimed(1), claimed(2))
    assert limit_of(script.only(DoExchange)) == 2


def test_a_claim_that_finds_less_waits_for_the_poll_interval() -> None:
    script = Script()
    script.gain()
    script.answer(0.5, claimed(1))
    assert script.sent is None
    assert script.wake_at == 1.5
    script.wake(1.4)
    assert script.sent is None
    script.wake(1.5)
    assert limit_of(script.only(DoExchange)) == 3


def test_the_next_due_instant_wakes_the_node_before_the_poll_interval() -> None:
    script = Script()
    script.gain()
    script.answer(0.5, next_due=0.2)
    assert script.wake_at is not None
    assert 0.7 <= script.wake_at < 0.71


def test_a_distant_due_instant_does_not_lengthen_the_poll_interval() -> None:
    script = Script()
    script.gain()
    script.answer(0.5, next_due=500.0)
    assert script.wake_at == 1.5


def test_a_hint_polls_at_once() -> None:
    script = Script()
    script.gain()
    script.answer(0.5)
    script.tell(Hinted(0.6))
    assert limit_of(script.only(DoExchange)) == 4


def test_a_hint_during_the_flight_of_a_claim_polls_again_after_it() -> None:
    script = Script()
    script.gain()
    script.tell(Hinted(0.1))
    script.answer(0.2)
    assert script.only(DoExchange).claim is not None
    script.answer(0.3)
    assert script.sent is None, "one hint costs one further poll"


def test_a_hint_before_the_claim_is_answered_by_that_claim() -> None:
    script = Script()
    script.gain()
    script.answer(0.1)
    script.tell(Hinted(0.2))
    script.answer(0.3)
    assert script.sent is None
    assert script.wake_at == 1.3


def test_weighted_shares_are_charged_when_the_claim_is_issued() -> None:
    script = Script(slots=3, queues={"a": 2, "b": 1})
    script.gain()
    assert script.sent is not None
    assert script.sent.claim is not None
    assert set(script.sent.claim.shares) == {Share("a", 2), Share("b", 1)}
    script.answer(0.1)
    script.wake(1.1)
    assert script.sent.claim is not None
    assert set(script.sent.claim.shares) == {Share("a", 2), Share("b", 1)}


def test_a_weighted_claim_that_found_nothing_is_charged_all_the_same() -> None:
    script = Script(slots=1, queues={"a": 1, "b": 1})
    script.gain()
    assert script.sent is not None
    assert script.sent.claim is not None
    assert script.sent.claim.shares[0] == Share("a", 1)
    script.answer(0.1)
    script.wake(1.1)
    assert script.sent.claim.shares[0] == Share("b", 1)


def test_an_outcome_batch_has_a_largest_size() -> None:
    script = Script(slots=3, options={"outcome_batch": 2})
    script.start_jobs(0.0, 1, 2, 3)
    script.finish(1.0, 1)
    script.finish(1.1, 2)
    script.finish(1.1, 3)
    script.answer(1.2)
    assert pairs_of(script.only(DoExchange).outcomes) == [pair_of(2), pair_of(3)]


def test_a_handler_that_returned_is_reported_as_succeeded() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1, Returned(b"5"))
    (outcome,) = script.only(DoExchange).outcomes
    assert (outcome.verdict, outcome.output) == (Verdict.SUCCEEDED, b"5")


def test_an_end_that_is_told_twice_is_reported_once() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1)
    script.finish(1.1, 1)
    script.answer(1.2)
    assert script.sent is None


def test_maintenance_runs_one_round_at_a_time_and_an_interval_apart() -> None:
    script = Script(upkeep=True, options={"maintenance_interval": 5.0, "poll_interval": 100.0})
    script.gain()
    assert script.all(DoMaintain)
    script.answer(0.1)
    script.wake(7.0)
    assert not script.all(DoMaintain)
    script.maintained(8.0, Maintained())
    assert script.wake_at == 13.0
    script.wake(13.0)
    assert script.all(DoMaintain)


def test_maintenance_that_filled_its_batch_goes_on_at_once() -> None:
    script = Script(upkeep=True)
    script.gain()
    script.maintained(0.1, Maintained(more=True))
    assert script.all(DoMaintain)


def test_maintenance_that_failed_is_asked_again_after_the_interval() -> None:
    script = Script(upkeep=True, options={"poll_interval": 100.0})
    script.gain()
    script.answer(0.05)
    script.maintained(0.1, None)
    assert not script.all(DoMaintain)
    script.wake(1.1)
    assert script.all(DoMaintain)


def test_a_lapse_that_makes_a_job_ready_is_told_and_polls_at_once() -> None:
    script = Script(upkeep=True)
    script.gain()
    script.answer(0.1)
    job_id, attempt = pair_of(9)
    lapsed = Lapsed(job_id=job_id, attempt=attempt, worker=W1, state=JobState.READY)
    script.maintained(0.2, Maintained(lapsed=(lapsed,)))
    assert script.all(NoticeLapsed) == [NoticeLapsed(lapsed)]
    assert script.only(DoExchange).claim is not None


def test_an_idle_node_asks_to_be_woken_only_in_the_future() -> None:
    script = Script(upkeep=True)
    script.gain()
    at = 0.0
    for _ in range(50):
        if script.sent is not None:
            script.answer(at)
        script.maintained(at, Maintained())
        assert script.wake_at is not None
        assert script.wake_at > at
        at = script.wake_at
        script.wake(at)


def test_a_reply_dated_before_the_latest_event_counts_as_of_that_event() -> None:
    script = Script()
    script.gain(10.0)
    reply = Exchanged(W1, START, live=True, claimed=(claimed(1, timeout=5.0),))
    script.tell(ExchangeAnswered(9.0, reply))
    assert script.all(Execute)
    assert script.wake_at == 11.0
