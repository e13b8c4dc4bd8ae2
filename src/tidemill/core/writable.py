"""Since when a process knows that a database can be written (clause C10).

Where one writer can block all others, a heartbeat may fail although its worker is well, and
whoever sweeps first after the block need not have waited in it. So a sweeper trusts an expired
lease only after it has itself looked, again and again for one lease, and never waited long.

A process looks whenever what it wrote is committed. Its heart's beat is, every third of a lease; so
looks at most half a lease apart leave no room for a block that could cost a well worker its
lease: a heart has two thirds of it to get one beat through.

What a process cannot have seen itself, the database can say: whoever looks leaves the instant, and
as long as these are close together a process that has just begun need not wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

_NOTED: Final = 0.25
"""Seconds: a shorter gap between two looks is not kept, since no lease is short enough for it."""
_MOST_KEPT: Final = 64
_SHARED_GAP: Final = timedelta(seconds=1.5)
"""The longest time between two looks of anybody that still says nothing was blocked."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all processes know together: the last look of any, and since when they were close."""

    looked_at: datetime
    since: datetime

    def vouches_since(self, now: datetime, lease: timedelta) -> datetime:
        """Since when no block was long enough to cost such a lease, as far as this can tell."""
        close = self.looked_at <= now <= self.looked_at + _SHARED_GAP
        return self.since if close and lease >= 2 * _SHARED_GAP else now


def after_look(before: Shared | None, now: datetime) -> Shared:
    """What is known together once somebody has written."""
    if before is None or not before.looked_at <= now <= before.looked_at + _SHARED_GAP:
        return Shared(now, now)
    return Shared(now, before.since)


class Writable:
    """The gaps between the looks of one process, as far as a sweep may ask for them."""

    def __init__(self) -> None:
        """Start without a look."""
        self._looked_at: float | None = None
        self._gaps: list[tuple[float, datetime]] = []

    def looked(self, at: float, now: datetime) -> None:
        """Something was written, at `at` of the process's own seconds, `now` for the store."""
        gap = float("inf") if self._looked_at is None else at - self._looked_at
        self._looked_at = at
        if gap < _NOTED:
            return
        while self._gaps and self._gaps[-1][0] <= gap:
            self._gaps.pop()  # whoever asks for such a gap wants the later one
        self._gaps.append((gap, now))
        if len(self._gaps) > _MOST_KEPT:
            self._merge_last()

    def since(self, at: float, now: datetime, lease: timedelta) -> datetime:
        """The end of the last gap in which a lease so long may have lapsed for want of a write."""
        longest = lease.total_seconds() / 2
        if self._looked_at is None or at - self._looked_at > longest:
            return now
        return next((end for gap, end in reversed(self._gaps) if gap > longest), now)

    def _merge_last(self) -> None:
        """Keep one gap for the last two: as long as the longer, ended with the later."""
        _, end = self._gaps.pop()
        longer, _ = self._gaps.pop()
        self._gaps.append((longer, end))
