"""A cancellation reaches its handler in whatever loop or thread it waits."""

import asyncio
import threading

from tidemill.shell.cancellation import Cancellation
from tidemill.values.endings import CancelReason


def test_the_first_reason_stays() -> None:
    cancellation = Cancellation()
    cancellation.set(CancelReason.OPERATOR)
    cancellation.set(CancelReason.SHUTDOWN)
    assert cancellation.reason is CancelReason.OPERATOR


async def test_everyone_who_waits_is_woken() -> None:
    cancellation = Cancellation()
    waiting = [asyncio.create_task(cancellation.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    cancellation.set(CancelReason.TIMEOUT)
    assert await asyncio.gather(*waiting) == [CancelReason.TIMEOUT] * 3


async def test_who_comes_late_does_not_wait() -> None:
    cancellation = Cancellation()
    cancellation.set(CancelReason.TIMEOUT)
    assert await cancellation.wait() is CancelReason.TIMEOUT


async def test_who_gave_up_waiting_is_forgotten() -> None:
    cancellation = Cancellation()
    waiting = asyncio.create_task(cancellation.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert cancellation._wakes == set()


def test_a_loop_that_has_closed_is_no_obstacle() -> None:
    cancellation = Cancellation()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(cancellation.wait())
    loop.run_until_complete(asyncio.sleep(0))
    woken = threading.Event()
    cancellation._wakes.add(woken.set)
    loop.run_until_complete(asyncio.sleep(0))
    wakes = set(cancellation._wakes)
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    cancellation._wakes |= wakes
    cancellation.set(CancelReason.LEASE_LOST)
    assert woken.is_set()
