"""What becomes of a worker's parts in a process that a handler forks: they do nothing there.

The child of a fork has a copy of the event loop, with everything that was about to run on it, and
shares its selector and sockets with the worker. It may do its own work and end by `os._exit`, or
start another program. If it comes back out of the handler, it would go on as a second worker with
the first one's identity: it ends there instead, at once and loudly.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_CAME_BACK: Final = (
    b"tidemill: a process that was forked inside a worker came back to the worker's own code, and "
    b"ends here. End such a process with os._exit(), or start a program with subprocess instead.\n"
)
_STATUS: Final = 70


class Forks:
    """Has the parts of one worker fall silent in any child of a fork.

    Args:
        loop: the worker's loop, whose copy in a child must not turn.
        silence: called in the child, before anything else runs there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, silence: Callable[[], None]) -> None:
        self._loop = loop
        self._silence = silence
        _known.add(self)

    def happened(self) -> None:
        """In the child."""
        self._silence()
        with suppress(RuntimeError):  # the loop is closed and turns no more
            self._loop.call_soon_threadsafe(end_here)


def end_here() -> None:
    """End a forked process that has come back."""
    os.write(2, _CAME_BACK)
    os._exit(_STATUS)


_known: weakref.WeakSet[Forks] = weakref.WeakSet()


def _after_fork() -> None:
    for forks in tuple(_known):
        forks.happened()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
