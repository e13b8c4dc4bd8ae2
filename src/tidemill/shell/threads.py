"""A pool of daemon threads for plain handlers.

The standard library's pool joins its threads when the interpreter ends, so one handler that
ignores its cancellation would keep the process for ever. These threads are daemons: what has not
ended by then was given back to the store (clause G3), and ends with the process.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Call = Callable[[], None]


class DaemonThreads:
    """Runs calls on at most `size` threads, started as they are needed."""

    def __init__(self, size: int, name: str) -> None:
        """Start no thread yet."""
        self._size = size
        self._name = name
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = Lock()
        self._started = 0
        self._idle = 0
        self._waiting = 0

    def submit(self, call: Call) -> None:
        """Run `call` on a thread, when one is free. It must not raise.

        Raises:
            RuntimeError: the system gives no further thread; the call will not be run.
        """
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._started < self._size:
                name = f"{self._name}-{self._started + 1}"
                Thread(target=self._serve, name=name, daemon=True).start()
                self._started += 1
            else:
                self._waiting += 1
        self._calls.put(call)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their call."""
        with self._lock:
            started, self._started, self._idle = self._started, 0, 0
        for _ in range(started):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # an idle thread keeps nothing of the last job alive
            with self._lock:
                if self._waiting:
                    self._waiting -= 1
                else:
                    self._idle += 1
