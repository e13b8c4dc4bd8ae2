"""Time that only a test moves, for the store and its workers alike.

A machine that pauses for a minute then costs no lease and lets no time-out pass: every step of time
is over when the heart has done what it asks for, and the next one is taken only after that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.waiting import until, wait_until

from tidemill.core.events import Woken
from tidemill.core.pulse import Ticked
from tidemill.shell.worker import Worker

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS_PER_LEASE = 12


class Clock:
    """The time of a test's store and workers: it runs, until it is held."""

    def __init__(self) -> None:
        self._held: float | None = None

    def monotonic(self) -> float:
        return time.monotonic() if self._held is None else self._held

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def hold(self) -> None:
        self._held = self.monotonic()

    def advance(self, seconds: float) -> None:
        assert self._held is not None, "a clock that runs cannot be moved"
        self._held += seconds


class HeldTime:
    """Moves a held clock, and has a worker take in what that changes."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        clock.hold()

    def step(self, worker: Worker, seconds: float | None = None) -> None:
        """Let a twelfth of the lease pass, unless told otherwise, and wait for the heart."""
        lease = worker._settings.lease.total_seconds()
        self.clock.advance(lease / STEPS_PER_LEASE if seconds is None else seconds)
        heart, taken = worker._heart, threading.Event()
        turned_at = heart._turned_at
        heart._ping()
        heart._asked.put(lambda at: Ticked(at, turned_at))
        heart._asked.put(lambda at: (taken.set(), Ticked(at, turned_at))[1])
        wait_until(lambda: taken.is_set() or not heart._thread.is_alive())

    async def until(self, worker: Worker, holds: Callable[[], object]) -> None:
        """Let time pass, step by step, until something holds."""

        def after_a_step() -> object:
            self.step(worker)
            worker._pump.tell(Woken(self.clock.monotonic()))
            return holds()

        await until(after_a_step)
