"""`mill.queues`: looking at queues and pausing them."""

from typing import Any

import pytest

from tidemill import Effect, Tidemill
from tidemill.errors import InvalidValue
from tidemill.shell.identity import new_id


@pytest.fixture
def sell(mill: Tidemill) -> Any:
    @mill.job("sell", queue="shop")
    async def sell() -> None: ...

    return sell


async def test_a_paused_queue_is_claimed_from_when_it_is_resumed(mill: Tidemill, sell: Any) -> None:
    @mill.job("count")
    async def count() -> None: ...

    assert (await mill.queues.pause("shop", actor="ada")).paused
    async with mill.worker(queues=["shop", "default"], concurrency=1):
        held_back = await sell.enqueue()
        await (await count.enqueue()).result(timeout=30)
        assert (await mill.jobs.get(held_back)).attempt == 0
        assert (await mill.queues.resume("shop", actor="ada")).effect is Effect.DONE
        await held_back.result(timeout=30)


async def test_queues_are_listed_with_what_is_to_come(mill: Tidemill, sell: Any) -> None:
    await sell.enqueue()
    await sell.with_options(delay="1h").enqueue()
    await mill.queues.pause("empty", actor="ada")
    assert [
        (each.queue, each.paused, each.ready, each.scheduled) for each in await mill.queues.list()
    ] == [("empty", True, 0, 0), ("shop", False, 1, 1)]


async def test_pausing_twice_or_under_the_same_id_changes_nothing(mill: Tidemill) -> None:
    action = new_id()
    first = await mill.queues.pause("shop", actor="ada", action=action)
    assert (first.effect, first.paused) == (Effect.DONE, True)
    assert (await mill.queues.pause("shop", actor="ada")).effect is Effect.UNCHANGED
    await mill.queues.resume("shop", actor="ada")
    assert await mill.queues.pause("shop", actor="ada", action=action) == first
    assert await mill.queues.list() == ()
    with pytest.raises(InvalidValue):
        await mill.queues.pause("shop", actor="")


def test_threads_pause_and_resume_with_sync(mill: Tidemill) -> None:
    queues = mill.queues.sync
    assert queues.pause("shop", actor="ada").effect is Effect.DONE
    assert [each.paused for each in queues.list()] == [True]
    assert queues.resume("shop", actor="ada").effect is Effect.DONE
    assert queues.list() == ()
