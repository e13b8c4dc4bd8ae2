"""A node without a free slot listens all the same, so that a cancel request reaches it (G2)."""

import pytest
from tests.core.script import W1, W2, Script, claimed, pair_of, running

from tidemill.core.commands import CancelHandler, DoExchange, Drained
from tidemill.core.events import DrainAsked, Hinted
from tidemill.values.endings import CancelReason

SOON = {"listen_interval": 1.0}


def cancel(number: int, worker=W1) -> CancelHandler:
    return CancelHandler(worker, pair_of(number), CancelReason.OPERATOR, "ada")


def test_a_hint_without_a_free_slot_asks_for_cancel_requests_and_claims_nothing() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(Hinted(0.5))
    sent = script.only(DoExchange)
    assert (sent.claim, sent.outcomes) == (None, ())
    script.answer(0.6, cancels=(running(1, cancel="ada"),))
    assert script.all(CancelHandler) == [cancel(1)]


def test_a_node_without_a_free_slot_listens_once_per_interval() -> None:
    script = Script(slots=1, options=SOON)
    script.start_jobs(0.0, 1)
    assert script.wake_at == 1.0
    script.wake(1.0)
    assert script.only(DoExchange).claim is None
    script.answer(1.2)
    assert script.sent is None
    assert script.wake_at == 2.2


def test_a_slot_that_frees_while_it_listens_is_claimed_for_next() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(Hinted(0.5))
    script.finish(0.55, 1)
    script.answer(0.6)
    sent = script.only(DoExchange)
    assert sent.claim is not None
    assert len(sent.outcomes) == 1


def test_a_hint_while_it_listens_is_not_lost() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(Hinted(0.5))
    script.tell(Hinted(0.55))
    script.answer(0.6)
    assert script.only(DoExchange).claim is None


def test_every_answer_brings_cancel_requests() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    script.finish(1.0, 1)
    script.answer(1.1, claimed(3), cancels=(running(2, cancel="ada"),))
    assert script.all(CancelHandler) == [cancel(2)]


def test_a_cancel_request_is_told_once() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    for at in (0.5, 0.7):
        script.tell(Hinted(at))
        script.answer(at + 0.1, cancels=(running(1, cancel="ada"),))
    assert [c for c in script.log if isinstance(c, CancelHandler)] == [cancel(1)]


def test_handlers_hear_of_a_cancel_while_the_worker_ends() -> None:
    script = Script(slots=2, options=SOON)
    script.start_jobs(0.0, 1, 2)
    script.tell(DrainAsked(0.5, grace=60.0))
    script.wake(1.0)
    assert script.only(DoExchange).claim is None
    script.answer(1.1, cancels=(running(2, cancel="ada"),))
    assert script.all(CancelHandler) == [cancel(2)]
    assert not [c for c in script.log if isinstance(c, Drained)]


@pytest.mark.parametrize("asked", [running(9, cancel="ada"), running(1, attempt=2, cancel="ada")])
def test_a_cancel_of_an_attempt_that_is_not_held_is_ignored(asked) -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(Hinted(0.5))
    script.answer(0.6, cancels=(asked,))
    assert script.all(CancelHandler) == []


def test_only_handlers_of_the_present_worker_are_listened_for() -> None:
    script = Script(slots=1, options=SOON)
    script.start_jobs(0.0, 1)
    script.lose(0.5)
    script.gain(0.6, W2)
    script.wake(5.0)
    assert script.sent is None, "its only slot is taken by a handler of the lost lease"
