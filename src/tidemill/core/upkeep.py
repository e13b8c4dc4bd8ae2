"""When a node asks for a round of maintenance: one at a time, an interval apart."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.values.leases import Maintained


@dataclass(slots=True)
class Upkeep:
    """The instant of the next round, in seconds of the node's clock."""

    interval: float
    due_at: float = 0.0
    underway: bool = False

    def begin(self, at: float) -> bool:
        """Whether a round is to start now; it is then under way."""
        if self.underway or at < self.due_at:
            return False
        self.underway = True
        return True

    def over(self, at: float, reply: Maintained | None) -> None:
        """The round ended; another follows at once if its batch was full."""
        self.underway = False
        more = reply is not None and reply.more
        self.due_at = at if more else at + self.interval

    @property
    def next_at(self) -> float:
        """When the next round is due; infinity while one is under way."""
        return float("inf") if self.underway else self.due_at
