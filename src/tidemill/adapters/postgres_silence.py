"""A connection of psycopg that does not wait for ever on a server that has fallen silent.

The server bounds its own statements, and the operating system notices a peer that is gone. A peer
that still takes bytes and never answers, such as a pooler that hangs, is noticed by nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg


class BoundedConnection(psycopg.Connection[Any]):
    """Gives up what has no answer after `silence` seconds, and itself with it; None never does."""

    silence: float | None = 15.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        if self.silence is None:
            return super().wait(gen, *args, **kwargs)
        return super().wait(self._until(gen, time.monotonic() + self.silence), *args, **kwargs)

    def _until(self, gen: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
        """What `gen` does; psycopg hands it nothing several times a second while nothing comes."""
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {self.silence:g} s")
                wanted = gen.send(ready)
        except StopIteration as stop:
            return stop.value
