"""Plain handlers on the thread of the event loop itself."""

from __future__ import annotations

import asyncio
from asyncio.events import (
    _set_running_loop,  # pyright: ignore[reportPrivateUsage] - public to event loops, as this is one
)

from tidemill.shell.threads import Call, DaemonThreads


class InlineCalls(DaemonThreads):
    """Runs each call on the loop's own thread, as if no loop ran there.

    For code that is bound to a thread: in a handler process, whose main thread runs the handlers,
    and in tests, with Django's test transactions or an SQLite database in memory.
    The loop stands still meanwhile, so nothing can interrupt a call.
    """

    def __init__(self) -> None:
        super().__init__(0, "inline")

    def submit(self, call: Call) -> None:
        """Run `call` at the loop's next turn."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            # A plain handler may use `.sync` verbs, which refuse to run under a loop.
            _set_running_loop(None)
            try:
                call()
            finally:
                _set_running_loop(loop)

        loop.call_soon(run)
