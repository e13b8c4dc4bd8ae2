"""When handlers must have ended: one heap for all of a node's timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K")
_SLACK = 64


class Deadlines(Generic[K]):
    """Keys by deadline. What is dropped leaves the heap lazily, so memory follows what is held."""

    def __init__(self) -> None:
        """Start without any."""
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._added = 0

    def add(self, key: K, at: float) -> None:
        """Note when `key` is due."""
        self._at[key] = at
        self._added += 1
        heappush(self._heap, (at, self._added, key))

    def drop(self, key: K) -> None:
        """Forget `key`, if it is there."""
        if self._at.pop(key, None) is not None and len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = [entry for entry in self._heap if self._at.get(entry[2]) == entry[0]]
            heapify(self._heap)

    def due(self, at: float) -> Iterator[K]:
        """Take out every key whose deadline has come, earliest first."""
        while self._heap and self._heap[0][0] <= at:
            deadline, _, key = heappop(self._heap)
            if self._at.get(key) == deadline:
                del self._at[key]
                yield key

    @property
    def next(self) -> float:
        """The earliest deadline that still stands; infinity when there is none."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")
