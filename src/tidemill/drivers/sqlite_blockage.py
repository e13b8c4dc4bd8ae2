"""What one process knows of the times when nobody could write (clause C10).

Shared by the connections of a store: a heart that gave up waiting is remembered by the next
connection that gets the lock. To get the lock is not to have written: a full disk lets everyone
begin and nobody commit, so only what was committed is a look at a database that can be written.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from tidemill.core.writable import Writable

LONG_WAIT: Final = timedelta(seconds=1)
"""Waiting this long for the write lock counts as a time when nobody could write."""

SHARED_EVERY: Final = 0.3
"""Seconds between two looks that a process leaves in the database for others to see."""

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Seconds that only climb, and go on while the machine sleeps where the system can tell."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class Blockage:
    """Since when this process waits or writes in vain, and when it wrote before."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked child: begin anew, since the lock may be held by a thread of the parent."""
        self._lock = Lock()
        self._since: float | None = None
        self._failing: float | None = None
        self._writable = Writable()
        self._shared_at = float("-inf")

    def gave_up(self, started: float) -> None:
        """A connection that waited since `started` did not get the lock."""
        with self._lock:
            self._since = started if self._since is None else min(self._since, started)

    def failed(self, started: float) -> None:
        """A connection that began at `started` got the lock, and could not write."""
        with self._lock:
            self._failing = started if self._failing is None else min(self._failing, started)

    def granted(self, started: float, at: float) -> float:
        """A connection that waited since `started` got the lock; answer the seconds of a long wait.

        Times when others got it and could not write count with it. If it was long, it is not over
        before `noted`: the note of it may yet be rolled back.
        """
        with self._lock:
            since = min(each for each in (started, self._since, self._failing) if each is not None)
            waited = at - since if at - since >= LONG_WAIT.total_seconds() else 0.0
            self._since = since if waited else None
            return waited

    def wrote(self, at: float, now: datetime) -> None:
        """What was begun at `at` is committed; it was `now` for the store then."""
        with self._lock:
            self._failing = None
            self._writable.looked(at, now)

    def shares(self, at: float) -> bool:
        """Whether the look at `at` is to be left in the database."""
        with self._lock:
            if at - self._shared_at < SHARED_EVERY:
                return False
            self._shared_at = at
            return True

    def noted(self) -> None:
        """The note of a long wait was committed, for every sweep on this database to heed."""
        with self._lock:
            self._since = None

    def writable_since(self, at: float, now: datetime, lease: timedelta) -> datetime:
        """Since when this process knows that no block was long enough to cost such a lease."""
        with self._lock:
            return self._writable.since(at, now, lease)
