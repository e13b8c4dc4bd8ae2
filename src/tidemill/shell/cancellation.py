"""One attempt's request to stop: set by the shell, read by the handler's context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event, Lock

from tidemill.values.endings import CancelReason


class Cancellation:
    """Tells a handler that it is to stop, and why, whether it runs in a loop or in a thread.

    The first reason stays: a handler never sees its reason change.
    """

    __slots__ = ("_event", "_lock", "_reason", "_wakes")

    def __init__(self) -> None:
        self._lock = Lock()
        self._event = Event()
        self._reason: CancelReason | None = None
        self._wakes: set[Callable[[], None]] = set()

    @property
    def reason(self) -> CancelReason | None:
        """Why the handler is to stop; None while nobody asked."""
        return self._reason

    def set(self, reason: CancelReason) -> None:
        """Ask the handler to stop. From any thread; only the first call counts."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            wakes, self._wakes = self._wakes, set()
        self._event.set()
        for wake in wakes:
            wake()

    def wait_in_thread(self, timeout: float | None = None) -> CancelReason | None:
        """Block this thread until asked to stop, at most `timeout` seconds (then None)."""
        self._event.wait(timeout)
        return self._reason

    async def wait(self) -> CancelReason:
        """Wait until asked to stop. From any event loop."""
        loop = asyncio.get_running_loop()
        asked = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(asked.set)
            except RuntimeError:  # that loop is closed, so nobody waits there any more
                return

        with self._lock:
            if self._reason is not None:
                return self._reason
            self._wakes.add(wake)
        try:
            await asked.wait()
        finally:
            with self._lock:
                self._wakes.discard(wake)
        return self._asked_reason()

    def _asked_reason(self) -> CancelReason:
        assert self._reason is not None, "woken without a reason"
        return self._reason
