"""Virtual time for what is to happen: acts at instants, which the store's clock follows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Final

from tidemill.store.memory.clock import VirtualClock

FOR_EVER: Final = float("inf")
LONG: Final = 3600.0
"""Seconds in which whatever is to happen has happened."""
_MOST_ACTS: Final = 100_000


class Timeline:
    """What is to happen, and when: seconds from its start, which the store's clock follows."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._start = clock()
        self._acts: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.now = 0.0

    def at(self, at: float, act: Callable[[], None]) -> None:
        """Let something happen at an instant; one that has passed is now."""
        if at < FOR_EVER:
            heappush(self._acts, (max(at, self.now), next(self._order), act))

    def after(self, wait: float, act: Callable[[], None]) -> None:
        """Let something happen after so many seconds."""
        self.at(self.now + wait, act)

    def run_until(self, holds: Callable[[], object], within: float = LONG) -> None:
        """Let time pass until something holds, which it must within so many seconds."""
        limit = self.now + within
        for _ in range(_MOST_ACTS):
            if holds():
                return
            assert self._acts, "nothing more happens, and it does not hold"
            assert self._acts[0][0] <= limit, f"within {within:g} s it does not come to hold"
            self._act()
        message = f"after {_MOST_ACTS:,} acts it does not hold: something spins"
        raise AssertionError(message)

    def run_for(self, seconds: float) -> None:
        """Let so many seconds pass."""
        over: list[bool] = []
        self.after(seconds, lambda: over.append(True))
        self.run_until(lambda: over, within=seconds)

    def _act(self) -> None:
        at, _, act = heappop(self._acts)
        if at > self.now:
            self.now = at
            self._clock.set(self._start + timedelta(seconds=at))
        act()
