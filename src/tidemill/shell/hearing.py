"""Hearing what handlers say: from any thread, and a moment later together, on the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from tidemill.shell.notepad import Notepad, Said

PAUSE_SECONDS: Final = 0.1
"""How long words gather: a handler that says something in a loop is heard ten times a second."""

Hear = Callable[[Said], None]


class Hearing:
    """One loop's. It is told of notepads by whoever writes on them.

    Args:
        loop: whose thread takes what was said.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._news = deque[tuple[Notepad, Hear]]()
        self._called = False

    def note(self, notepad: Notepad, hear: Hear) -> None:
        """Have `hear` called with what is on this pad, a moment later. From any thread.

        Without locks, as the pad: where two call at once, the loop is woken twice.
        """
        self._news.append((notepad, hear))
        if not self._called:
            self._call()

    def _call(self) -> None:
        self._called = True
        try:
            self._loop.call_soon_threadsafe(self._wait)
        except RecursionError:  # the end of somebody's stack: the next word calls again
            self._called = False
            raise
        except RuntimeError:  # the loop has closed: nobody is left to tell
            return

    def _wait(self) -> None:
        self._loop.call_later(PAUSE_SECONDS, self._take)

    def _take(self) -> None:
        self._called = False  # first: what is told from now on calls again
        while self._news:
            notepad, hear = self._news.popleft()
            hear(notepad.take())
