"""Waiting for what has no event to wait on: a row of a store, a line of a log, a thread that ends.

The only place in the tests that sleeps. A pause between two looks decides nothing: it leaves the
processor to those who are waited for, and the test goes on as soon as the condition holds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

GENEROUS = 60.0
"""Seconds after which a condition will never hold, on any machine."""
BREATH = 0.005


def wait_until(holds: Callable[[], object]) -> None:
    """Block until a condition holds."""
    deadline = time.monotonic() + GENEROUS
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(BREATH)


async def until(holds: Callable[[], object]) -> None:
    """Let the event loop run until a condition holds."""
    async with asyncio.timeout(GENEROUS):
        while not holds():  # noqa: ASYNC110 - what has an event is waited for by its event
            await asyncio.sleep(BREATH)
