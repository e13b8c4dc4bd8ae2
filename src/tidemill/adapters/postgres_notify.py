"""Telling other processes that there may be work, seldom enough to cost nothing.

A notification in every transaction takes a lock of the whole database at commit: eight connections
that enqueue fall from 6.4 k/s to 2.6 k/s. So the first transaction of a window notifies, at its own
commit, and what follows within the window is told by one more notification at its end, from a
connection of the library's own. A notification that is lost costs a poll interval.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from tidemill.adapters.connection_thread import ConnectionThread
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.errors import TidemillError
from tidemill.sql.program import Statement

WINDOW_SECONDS: Final = 0.05
RIDERS: Final = 5
"""How many transactions of the user's notify in one window: too few to cost anything."""
_STOP_SECONDS: Final = 5.0
_log = logging.getLogger("tidemill.store")

Connect = Callable[[], PsycopgExecutor]


class Notifier:
    """Decides who notifies, and does the late ones.

    Args:
        channel: where listeners listen.
        connect: opens a connection for the late notifications.
        enabled: off, nothing is ever notified.
    """

    def __init__(self, channel: str, connect: Connect, *, enabled: bool) -> None:
        self.channel = channel
        self._connect = connect
        self._enabled = enabled
        self._lock = Lock()
        self._window_ends = 0.0
        self._promised = False
        self._riders = 0
        self._riders_window_ends = 0.0
        self._thread: ConnectionThread[Voice] | None = None

    @property
    def notice(self) -> Statement:
        """What notifies, in whichever transaction it is said."""
        return Statement("notify", {"channel": self.channel})

    @property
    def due(self) -> bool:
        """Whether a transaction that made work now would be the first of a window."""
        return self._enabled and time.monotonic() >= self._window_ends

    def first(self) -> bool:
        """Whether this transaction is the first of a window, and so notifies itself."""
        with self._lock:
            if not self.due:
                return False
            self._window_ends = time.monotonic() + WINDOW_SECONDS
            return True

    def rides(self) -> bool:
        """Whether a transaction of the user's notifies, which is heard when that commits.

        Nobody can tell of it later instead, since nobody else knows when that is. So the first few
        of a window do; where there are more, one commit is told of by the next.
        """
        with self._lock:
            now = time.monotonic()
            if now >= self._riders_window_ends:
                self._riders_window_ends, self._riders = now + WINDOW_SECONDS, 0
            self._riders += 1
            return self._enabled and self._riders <= RIDERS

    def later(self) -> None:
        """Notify once at the end of this window, whoever else asks for it."""
        with self._lock:
            if not self._enabled or self._promised:
                return
            self._promised = True
            if self._thread is None:
                self._thread = ConnectionThread(
                    "tidemill-postgres-notifier", lambda: Voice(self._connect, self.notice)
                )
            self._thread.submit(self._speak)

    def stop(self) -> None:
        """Say what was promised, and end."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(_STOP_SECONDS)

    def forget_parent(self) -> None:
        """In a forked child: the thread and its connection stayed with the parent."""
        self._lock = Lock()
        self._promised = False
        self._thread = None

    def _speak(self, voice: Voice) -> None:
        time.sleep(max(self._window_ends - time.monotonic(), 0.0))
        with self._lock:
            self._promised = False
            self._window_ends = time.monotonic() + WINDOW_SECONDS
        voice.speak()


class Voice:
    """A connection that notifies, and is replaced when it breaks."""

    def __init__(self, connect: Connect, notice: Statement) -> None:
        self._connect = connect
        self._notice = notice
        self._executor: PsycopgExecutor | None = None

    def speak(self) -> None:
        """Notify; a failure is logged, since a lost notification costs a poll interval."""
        try:
            if self._executor is None:
                self._executor = self._connect()
            self._executor.step(self._notice)
        except TidemillError as error:
            _log.debug("A notification was not sent: %s", error)
            self.close()

    def close(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.close()
