"""The SQLite store: one writer, a reader beside it, and hints from the file itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Final, Self, TypeVar

from tidemill.adapters.connected import ConnectedStore
from tidemill.adapters.connection_thread import ConnectionThread
from tidemill.adapters.hints import Wake
from tidemill.adapters.host_clock import utc_now
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
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import writes
from tidemill.store.contract import Capabilities, Clock, Operation, SyncChannel
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.doctor import DatabaseHealth

R = TypeVar("R")

_STOP_SECONDS: Final = 30.0
_CAPABILITIES: Final = Capabilities(name=PRODUCT, hints=True, persistent=True, bridges=True)


class SqliteStore(ConnectedStore[Site, "Threads"]):
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
        super().__init__(Site(settings, catalogue, clock, env, auto_migrate), Threads)

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

    @contextmanager
    def dedicated(self) -> Generator[SyncChannel]:
        process = os.getpid()
        channel = self._site.open()
        try:
            yield channel
        finally:
            if os.getpid() == process:
                channel.close()
            else:
                channel.abandon()

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
            return self._shown(channel.missing())
        finally:
            channel.close()

    def examine(self) -> DatabaseHealth:
        return examine(self._site)

    def looking(self) -> AbstractContextManager[SyncChannel]:
        return looking(self._site)

    def forget_parent(self) -> None:
        """As every store does; and forget since when the parent could not write."""
        super().forget_parent()
        self._site.blockage.forget()

    def _submit(self, operation: Operation[R]) -> Future[R]:
        threads = self._open()
        thread = threads.writer if writes(operation) else threads.reader
        first = is_workers_own(operation)
        return thread.submit(lambda channel: channel.perform(operation), first=first)


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
