"""The SQLite store: one writer, a reader beside it, and hints from the file itself."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final, Self, TypeVar

from tidemill.adapters.connection_thread import ConnectionThread
from tidemill.adapters.hints import Wake
from tidemill.adapters.precedence import is_workers_own
from tidemill.adapters.sqlite_channel import POLL_SECONDS, Site, SqliteChannel
from tidemill.adapters.sqlite_files import (
    BUSY_TIMEOUT,
    NORMAL,
    Settings,
    Synchronous,
    checked_path,
    settings_of,
)
from tidemill.adapters.sqlite_health import PRODUCT, examine
from tidemill.adapters.sqlite_look import looking
from tidemill.adapters.waiting import outcome_of
from tidemill.drivers.footing import Footing
from tidemill.drivers.sqlite import require_version
from tidemill.errors import StoreError
from tidemill.sql.catalogue import Catalogue, substitute
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import writes
from tidemill.store.contract import Capabilities, Clock, Operation, SyncChannel
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.doctor import DatabaseHealth

R = TypeVar("R")

_STOP_SECONDS: Final = 30.0
_CAPABILITIES: Final = Capabilities(name=PRODUCT, hints=True, persistent=True, bridges=True)


def utc_now() -> datetime:
    """The host's time, which is an SQLite store's clock."""
    return datetime.now(UTC)


class SqliteStore:
    """A store in one SQLite file, for any number of processes on one host.

    Args:
        path: the file; it is made when it is not there.
        clock: the store's time; the host's by default.
        bounds: the largest of everything.
        synchronous: NORMAL (default) keeps the database whole in a power cut but may lose the last
            commits; FULL loses none.
        busy_timeout: how long one try waits for another writer (default 2 s); there are two, and
            both together must stay well below the delivery time-out of a worker.
        auto_migrate: bring the schema up to date at first use (default); else `migrate` has to.

    Raises:
        ConfigurationError: an in-memory database, a network file system, or an SQLite library
            older than 3.40.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock = utc_now,
        bounds: Bounds = DEFAULT_BOUNDS,
        synchronous: Synchronous = NORMAL,
        busy_timeout: timedelta = BUSY_TIMEOUT,
        auto_migrate: bool = True,
    ) -> None:
        require_version()
        settings = Settings(checked_path(path).absolute(), synchronous, busy_timeout)
        catalogue = Catalogue(SqliteDialect())
        env = Env(catalogue.dialect, bounds)
        self._site = Site(settings, catalogue, clock, env, auto_migrate)
        self._lock = Lock()
        self._threads: Threads | None = None
        self._closed = False
        _stores.add(self)

    @classmethod
    def from_url(cls, url: str, *, clock: Clock = utc_now, bounds: Bounds = DEFAULT_BOUNDS) -> Self:
        """The store of `sqlite:///relative.db` or `sqlite:////absolute.db`.

        `?synchronous=FULL` and `?busy_timeout=5s` set what the arguments of the same names do.

        Raises:
            ConfigurationError: it names no usable file, or says something unknown about it.
        """
        named = settings_of(url)
        return cls(
            named.path,
            clock=clock,
            bounds=bounds,
            synchronous=named.synchronous,
            busy_timeout=named.busy_timeout,
        )

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    @property
    def bounds(self) -> Bounds:
        return self._site.env.bounds

    def footing(self) -> Footing:
        site = self._site
        return Footing(
            database=PRODUCT,
            catalogue=site.catalogue,
            env=site.env,
            clock=site.clock,
            lock_wait=site.settings.busy_timeout,
            file=site.settings.path,
        )

    async def perform(self, operation: Operation[R]) -> R:
        return await outcome_of(self._submit(operation))

    def perform_sync(self, operation: Operation[R]) -> R:
        work = self._submit(operation)
        try:
            return work.result()
        except BaseException:
            work.cancel()  # of no effect but where the wait itself was interrupted
            raise

    def dedicated(self) -> AbstractContextManager[SyncChannel]:
        return self._dedicated()

    def watch(self, wake: Wake) -> Callable[[], None]:
        stop = self._site.hints.add(wake)
        self._open().nudge()
        return stop

    def migrate(self) -> tuple[str, ...]:
        channel = self._site.open_unchecked()
        try:
            return channel.migrate()
        finally:
            channel.close()

    def plan(self) -> tuple[tuple[str, str], ...]:
        channel = self._site.open_unchecked()
        try:
            steps = channel.missing()
        finally:
            channel.close()
        fragments = self._site.catalogue.dialect.fragments
        return tuple((step.name, substitute(step.text, fragments)) for step in steps)

    def examine(self) -> DatabaseHealth:
        return examine(self._site)

    def looking(self) -> AbstractContextManager[SyncChannel]:
        return looking(self._site)

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, None
            self._closed = True
        if threads is not None:
            threads.stop()

    def forget_parent(self) -> None:
        """In a forked child: leave the parent's connections alone, and open others when needed."""
        self._lock = Lock()
        self._threads = None
        self._site.hints.forget()
        self._site.blockage.forget()

    def _submit(self, operation: Operation[R]) -> Future[R]:
        threads = self._open()
        thread = threads.writer if writes(operation) else threads.reader
        first = is_workers_own(operation)
        return thread.submit(lambda channel: channel.perform(operation), first=first)

    def _open(self) -> Threads:
        with self._lock:
            if self._closed:
                message = "The store was closed; make a new one."
                raise StoreError(message)
            if self._threads is None:
                self._threads = Threads(self._site)
                weakref.finalize(self, self._threads.stop)
            return self._threads

    @contextmanager
    def _dedicated(self) -> Generator[SyncChannel]:
        process = os.getpid()
        channel = self._site.open()
        try:
            yield channel
        finally:
            if os.getpid() == process:
                channel.close()
            else:
                channel.abandon()


class Threads:
    """The writer and the reader of one process."""

    def __init__(self, site: Site) -> None:
        self._process = os.getpid()
        hints = site.hints
        self.writer: ConnectionThread[SqliteChannel] = ConnectionThread(
            "tidemill-sqlite-writer",
            site.open,
            pause=lambda: POLL_SECONDS if hints.watched else None,
            idle=SqliteChannel.look_for_others,
        )
        self.reader: ConnectionThread[SqliteChannel] = ConnectionThread(
            "tidemill-sqlite-reader", site.open
        )

    def nudge(self) -> None:
        """Have the writer notice that somebody watches."""
        self.writer.submit(lambda _channel: None)

    def stop(self) -> None:
        if os.getpid() == self._process:
            self.reader.stop(_STOP_SECONDS)
            self.writer.stop(_STOP_SECONDS)


_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in tuple(_stores):
        store.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
