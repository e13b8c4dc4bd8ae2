"""How a handler process passes on what its handler says: gathered for a moment, by a thread.

The main thread may compute for hours, and whoever speaks must not wait for the worker to listen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final

from tidemill.shell.hearing import PAUSE_SECONDS
from tidemill.shell.notepad import Notepad

_NAME: Final = "tidemill-handler-speaker"


class Speaker:
    """One process's. Its thread starts with the first word.

    Args:
        send: takes what is on a notepad and sends it to the worker.
    """

    def __init__(self, send: Callable[[Notepad], None]) -> None:
        self._send = send
        self._news = SimpleQueue[Notepad | None]()
        self._thread: Thread | None = None

    def note(self, notepad: Notepad) -> None:
        """Have what is on this pad sent a moment later. From any thread."""
        self._news.put(notepad)
        if self._thread is None:
            thread = Thread(target=self._speak, name=_NAME, daemon=True)
            thread.start()
            self._thread = thread

    def close(self) -> None:
        """Have the thread end, once it has sent what it was told of, and wait for it."""
        if self._thread is not None:
            self._news.put(None)
            self._thread.join()

    def _speak(self) -> None:
        while (notepad := self._news.get()) is not None:
            time.sleep(PAUSE_SECONDS)
            self._send(notepad)
