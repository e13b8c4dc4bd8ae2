"""One call at a time on each connection, where tasks or threads share one.

A call that fails goes back to its savepoint. That would undo what another call wrote on the same
connection meanwhile, and had been told was written.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Generic, TypeVar

L = TypeVar("L")


class _Locks(Generic[L]):
    """A lock for each connection on which calls are under way, and for no other."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self.forget()

    def forget(self) -> None:
        """Start anew, as after a fork: whoever held a lock is not here."""
        self._guard = threading.Lock()
        self._held: dict[int, tuple[L, int]] = {}

    @contextmanager
    def of(self, tx: object) -> Generator[L]:
        key = id(tx)  # nobody else's while a caller holds the connection
        with self._guard:
            lock, users = self._held.get(key) or (self._make(), 0)
            self._held[key] = lock, users + 1
        try:
            yield lock
        finally:
            with self._guard:
                lock, users = self._held.pop(key)
                if users > 1:
                    self._held[key] = lock, users - 1


# One that its own thread may take again: what runs inside a call, such as a listener of
# SQLAlchemy's, may call too.
_SYNC: Final = _Locks(threading.RLock)
_ASYNC: Final = _Locks(asyncio.Lock)


@contextmanager
def turn(tx: object) -> Generator[None]:
    """Wait for the calls of other threads on a connection, then keep them waiting."""
    with _SYNC.of(tx) as lock, lock:
        yield


@asynccontextmanager
async def turn_async(tx: object) -> AsyncGenerator[None]:
    """The same for the calls of other tasks."""
    with _ASYNC.of(tx) as lock:
        async with lock:
            yield


def _after_fork() -> None:
    _SYNC.forget()
    _ASYNC.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
