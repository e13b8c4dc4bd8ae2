"""Ending in order: finish, then cancel, then give back, then give up (clause G3).

The grace period lets handlers finish. After it they are cancelled with reason `shutdown`. What
ignores that for `patience` seconds is given back while it still runs. Outcomes that the store will
not take within `flush` seconds more are given up; their attempts lapse.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from tidemill.core.events import DrainAsked, HurryAsked


class Phase(Enum):
    """How far the end has come."""

    WORKING = auto()
    FINISHING = auto()
    CANCELLING = auto()
    FLUSHING = auto()
    ENDED = auto()


@dataclass(slots=True)
class Drain:
    """The phases of ending and the instant each one is over."""

    patience: float
    flush: float
    phase: Phase = Phase.WORKING
    over_at: float = float("inf")

    @property
    def started(self) -> bool:
        """Whether no further claim may be made."""
        return self.phase is not Phase.WORKING

    @property
    def ended(self) -> bool:
        """Whether the end has been reached."""
        return self.phase is Phase.ENDED

    def hear(self, at: float, event: DrainAsked | HurryAsked) -> None:
        """The worker is to end, or to end sooner."""
        if isinstance(event, DrainAsked):
            self.ask(at, event.grace)
        else:
            self.hurry(at)

    def ask(self, at: float, grace: float) -> None:
        """Start to end. Asking again changes nothing."""
        if self.phase is Phase.WORKING:
            self.phase = Phase.FINISHING
            self.over_at = at + grace

    def hurry(self, at: float) -> None:
        """The present phase is over now. After the end there is none."""
        if self.ended:
            return
        if self.phase is Phase.WORKING:
            self.phase = Phase.FINISHING
        self.over_at = min(self.over_at, at)

    def advance(self, at: float) -> Phase | None:
        """Enter the next phase if the present one is over; answer the phase entered."""
        if at < self.over_at:
            return None
        match self.phase:
            case Phase.FINISHING:
                self.phase, self.over_at = Phase.CANCELLING, at + self.patience
            case Phase.CANCELLING:
                self.phase, self.over_at = Phase.FLUSHING, at + self.flush
            case Phase.FLUSHING:
                self.end()
            case Phase.WORKING | Phase.ENDED:
                return None
        return self.phase

    def end(self) -> None:
        """Nothing is left to wait for."""
        self.phase, self.over_at = Phase.ENDED, float("inf")
