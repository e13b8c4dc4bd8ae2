"""The store's time between two answers of it, for handlers that ask what time it is."""

from __future__ import annotations

from datetime import datetime, timedelta

from tidemill.shell.monotonic import Monotonic


class StoreTime:
    """Remembers the store's last word on the time and counts on from there."""

    def __init__(self, clock: Monotonic) -> None:
        """Start without an answer; `now` may be asked once there was one."""
        self._clock = clock
        self._heard: tuple[datetime, float] | None = None

    def hear(self, now: datetime) -> None:
        """Take the store's time from an answer."""
        self.hear_at(now, self._clock())

    def hear_at(self, now: datetime, at: float) -> None:
        """Take what the store's time was at that instant of the clock."""
        self._heard = (now, at)

    def now(self) -> datetime:
        """The store's time, to within one answer's delay."""
        assert self._heard is not None, "a handler runs only after the store has answered"
        instant, at = self._heard
        return instant + timedelta(seconds=self._clock() - at)
