"""MemoryStore: the seam between the contract and the tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import TypeVar, cast

from tidemill.store.contract import Capabilities, Clock, Operation, SyncChannel
from tidemill.store.memory.performers import PERFORMERS
from tidemill.store.memory.tables import Tables, Work
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.doctor import DatabaseHealth, SchemaHealth

_log = logging.getLogger("tidemill.store")

R = TypeVar("R")


class MemoryStore:
    """The reference store: everything in this process, deterministic, gone when it ends.

    The same operations on the same clock give the same answers. Threads may share it: one lock
    makes every operation whole. For tests and for the simulator; a worker process refuses it.

    Args:
        clock: tells the store's time; a `VirtualClock` in tests.
        bounds: the largest of everything.
    """

    def __init__(self, clock: Clock, *, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._clock = clock
        self._bounds = bounds
        self._lock = Lock()
        self._tables = Tables()
        self._watchers: dict[object, Callable[[], None]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(name="memory", hints=True, persistent=False)

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    async def perform(self, operation: Operation[R]) -> R:
        return self.perform_sync(operation)

    def perform_sync(self, operation: Operation[R]) -> R:
        performer = PERFORMERS.get(type(operation))
        if performer is None:
            message = f"{type(operation).__name__} is no operation of the storage contract."
            raise TypeError(message)
        with self._lock:
            self._tables.hinted = False
            work = Work(self._tables, self._bounds, self._clock())
            answer = cast("R", performer(work, operation))
            wakes = tuple(self._watchers.values()) if self._tables.hinted else ()
        for wake in wakes:
            _give(wake)
        return answer

    @contextmanager
    def dedicated(self) -> Generator[SyncChannel]:
        yield _Channel(self)

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._watchers[token] = wake

        def stop() -> None:
            with self._lock:
                self._watchers.pop(token, None)

        return stop

    def migrate(self) -> tuple[str, ...]:
        return ()

    def plan(self) -> tuple[tuple[str, str], ...]:
        return ()

    def examine(self) -> DatabaseHealth:
        current = SchemaHealth(version=1, min_compatible=1, known=1)
        return DatabaseHealth(
            product="memory", place="this process", now=self._clock(), schema=current
        )

    def looking(self) -> AbstractContextManager[SyncChannel]:
        return self.dedicated()

    def close(self) -> None:
        """Nothing was opened."""


def _give(wake: Callable[[], None]) -> None:
    """Give a hint. A wake that raises is logged: what was committed stays committed."""
    try:
        wake()
    except Exception:  # noqa: BLE001 - it is the watcher's, whatever it is
        _log.exception("A wake-up hint was not taken.")


class _Channel:
    """The store again, as a heart's own thread speaks to it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def perform(self, operation: Operation[R]) -> R:
        return self._store.perform_sync(operation)
