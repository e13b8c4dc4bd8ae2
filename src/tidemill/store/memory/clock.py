"""Virtual time: a clock that tests advance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Stands still until it is told otherwise. Threads may share it.

    Args:
        start: the first instant, aware; by default the first of January 2026, UTC.
    """

    def __init__(self, start: datetime = START) -> None:
        self._lock = Lock()
        self._now = _utc(start)

    def __call__(self) -> datetime:
        """The instant it stands at, in UTC."""
        with self._lock:
            return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move on by a duration (a negative one moves back), and answer the new instant."""
        with self._lock:
            self._now += by
            return self._now

    def set(self, instant: datetime) -> datetime:
        """Jump to an instant, forwards or back, and answer it."""
        with self._lock:
            self._now = _utc(instant)
            return self._now


def _utc(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        message = f"A clock cannot stand at {instant}: give an aware datetime."
        raise ValueError(message)
    return instant.astimezone(UTC)
