"""How often, and after which pauses, what left no trace is tried again (clause M3)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from tidemill.errors import StoreUnavailable

R = TypeVar("R")

TRIES: Final = 4
_FIRST: Final = 0.02
_LONGEST: Final = 0.5


def pauses() -> Iterator[float]:
    """The seconds to wait before each further try.

    They grow, are bounded, and are random, so that those who met once do not meet again.
    """
    longest = _FIRST
    for _ in range(TRIES - 1):
        yield random.uniform(0, longest)  # noqa: S311 - spreads retries
        longest = min(longest * 4, _LONGEST)


def patiently(do: Callable[[], R], /) -> R:
    """Call, again after each pause while the database cannot just then.

    Raises:
        StoreUnavailable: it could not the last time either.
    """
    for pause in pauses():
        try:
            return do()
        except StoreUnavailable:
            time.sleep(pause)
    return do()


async def patiently_async(do: Callable[[], Awaitable[R]], /) -> R:
    """The same, awaited."""
    for pause in pauses():
        try:
            return await do()
        except StoreUnavailable:
            await asyncio.sleep(pause)
    return await do()
