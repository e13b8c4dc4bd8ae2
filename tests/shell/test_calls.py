"""A call to the store ends in exactly one event, whatever the store does."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tidemill.core.commands import DoExchange
from tidemill.core.events import ExchangeAnswered, ExchangeFailed, MaintainAnswered
from tidemill.errors import AnswerLost, BoundExceeded, SchemaError, StoreUnavailable
from tidemill.shell.calls import StoreCalls
from tidemill.shell.identity import new_id
from tidemill.shell.store_time import StoreTime
from tidemill.values.ids import WorkerId


def every(_operation):
    return True


@pytest.fixture
def exchange():
    return DoExchange(WorkerId(new_id()))


@pytest.fixture
def calls(store):
    minute = timedelta(minutes=1)
    return StoreCalls(store, minute, minute, lambda: 7.0, StoreTime(lambda: 7.0))


async def test_an_answer_is_handed_on_with_its_instant(calls, exchange):
    event = await calls.exchange(exchange)
    assert isinstance(event, ExchangeAnswered)
    assert (event.at, event.reply.worker) == (7.0, exchange.worker)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreUnavailable("busy"), (False, False)),
        (SchemaError("no table"), (False, False)),
        (AnswerLost("cut"), (False, True)),
        (BoundExceeded("Output", 2, 1, "bytes"), (True, False)),
        (ZeroDivisionError("a fault of the store"), (True, False)),
    ],
)
async def test_a_failed_exchange_says_whether_to_ask_again(calls, store, exchange, error, expected):
    store.fail(every, error)
    event = await calls.exchange(exchange)
    assert isinstance(event, ExchangeFailed)
    assert (event.refused, event.unknown) == expected
    assert str(error) in event.why


async def test_an_exchange_over_the_delivery_time_out_has_an_unknown_answer(store, exchange):
    store.hold(every)
    short = timedelta(milliseconds=20)
    calls = StoreCalls(store, short, short, lambda: 7.0, StoreTime(lambda: 7.0))
    event = await calls.exchange(exchange)
    assert isinstance(event, ExchangeFailed)
    assert (event.refused, event.unknown) == (False, True)
    assert "delivery time-out of 0.02 s" in event.why
    assert await calls.maintain() == MaintainAnswered(7.0, None)


async def test_a_call_that_the_store_cancels_by_itself_has_an_unknown_answer(
    calls, store, exchange
):
    store.fail(every, asyncio.CancelledError(), asyncio.CancelledError())
    event = await calls.exchange(exchange)
    assert isinstance(event, ExchangeFailed)
    assert event.unknown
    assert await calls.maintain() == MaintainAnswered(7.0, None)


async def test_a_call_that_is_cancelled_from_outside_is_cancelled(calls, store, exchange):
    store.hold(every)
    running = asyncio.create_task(calls.exchange(exchange))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("error", [StoreUnavailable("busy"), AnswerLost("cut"), KeyError("odd")])
async def test_a_failed_round_of_upkeep_is_no_answer(calls, store, error):
    store.fail(every, error)
    assert await calls.maintain() == MaintainAnswered(7.0, None)
