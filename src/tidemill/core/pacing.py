"""When a node talks to its store: polling, backing off, and taking an exchange apart.

After an exchange without an answer the next one carries outcomes alone, the one after it a claim
alone, whatever came of the first, and both travel together again once a claim was answered (clause
M3): so a claim that the store chokes on never keeps finished work from being recorded, nor the
other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

_DUE_SLACK = 0.001
_DOUBLINGS = 64
_NEVER = float("inf")


class Form(Enum):
    """What the next exchange may carry."""

    FUSED = auto()
    OUTCOMES = auto()
    CLAIM = auto()


@dataclass(slots=True)
class Pacing:
    """The instants that decide about the next exchange, in seconds of the node's clock."""

    poll_interval: float
    listen_interval: float
    first_delay: float
    longest_delay: float
    poll_at: float = 0.0
    listen_at: float = 0.0
    resume_at: float = 0.0
    faults: int = 0
    form: Form = Form.FUSED
    hinted: bool = False

    @property
    def degraded(self) -> bool:
        """Whether the last exchange had no answer."""
        return self.faults > 0

    def poll_now(self, at: float) -> None:
        """Something may be due, or asked for."""
        self.poll_at = min(self.poll_at, at)
        self.listen_at = min(self.listen_at, at)
        self.hinted = True

    def sent(self, *, poll: bool) -> None:
        """An exchange is on its way; `poll` says whether it looks for what is due.

        Hints from here on ask for another one.
        """
        self.listen_at = _NEVER
        if poll:
            self.hinted = False
            self.poll_at = _NEVER

    def claimed(self) -> None:
        """A claim was answered: the next exchange may carry both again."""
        self.form = Form.FUSED

    def answered(self, at: float, *, polled: bool, full: bool, next_due: timedelta | None) -> None:
        """The exchange was answered; `full` says that a claim found all it asked for."""
        self.faults = 0
        self.resume_at = at
        if self.form is Form.OUTCOMES:
            self.form = Form.CLAIM
        self.listen_at = at + (0.0 if self.hinted else self.listen_interval)
        if polled:
            self.poll_at = at + (0.0 if full or self.hinted else self._idle(next_due))

    def failed(self, at: float, *, outcomes: bool) -> None:
        """The exchange had no answer; `outcomes` says whether any are left to report."""
        self.faults += 1
        wait = min(self.first_delay * 2.0 ** min(self.faults - 1, _DOUBLINGS), self.longest_delay)
        self.resume_at = at + wait
        self.poll_at = min(self.poll_at, self.resume_at)
        self.listen_at = self.resume_at
        turn = outcomes and self.form is not Form.OUTCOMES
        self.form = Form.OUTCOMES if turn else Form.CLAIM

    def refused(self, at: float) -> None:
        """The store would not take the outcomes as they were: it is there, so no wait is needed."""
        self.resume_at = at
        self.poll_at = min(self.poll_at, at)
        self.listen_at = at
        self.form = Form.OUTCOMES

    def _idle(self, next_due: timedelta | None) -> float:
        if next_due is None:
            return self.poll_interval
        return min(self.poll_interval, max(next_due.total_seconds(), 0.0) + _DUE_SLACK)
