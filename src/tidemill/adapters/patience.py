"""How often, and after which pauses, what left no trace is tried again (clause M3)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from tidemill.errors import StoreUnavailable

R = TypeVar("R")

_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class Tries:
    """How often something is tried, and how long the pauses between may be.

    Only what raises StoreUnavailable is tried again, so whatever is called raises that where it has
    left no trace. The last try's error passes.

    Attributes:
        most: how many tries there are.
        first: the most seconds of the first pause; of each further one four times as many.
        longest: the most seconds of any pause.
    """

    most: int
    first: float
    longest: float

    def pauses(self) -> Iterator[float]:
        """The seconds to wait before each further try.

        They are random, so that those who met once do not meet again.
        """
        most = min(self.first, self.longest)
        for _ in range(self.most - 1):
            yield random.uniform(0, most)  # noqa: S311 - spreads retries
            most = min(most * _GROWTH, self.longest)

    def patiently(self, do: Callable[[], R], /) -> R:
        """Call, again after each pause while the database cannot just then.

        Raises:
            StoreUnavailable: it could not the last time either.
        """
        for pause in self.pauses():
            try:
                return do()
            except StoreUnavailable:
                time.sleep(pause)
        return do()

    async def patiently_async(self, do: Callable[[], Awaitable[R]], /) -> R:
        """The same, awaited."""
        for pause in self.pauses():
            try:
                return await do()
            except StoreUnavailable:
                await asyncio.sleep(pause)
        return await do()
