"""The PostgreSQL store: asyncpg for coroutines, psycopg for threads, the same programs on both."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from threading import Lock
from typing import Final, Self, TypeVar

from tidemill.adapters.connected import ConnectedStore
from tidemill.adapters.hints import Wake
from tidemill.adapters.postgres_async import AsyncChannels
from tidemill.adapters.postgres_health import PRODUCT, examine
from tidemill.adapters.postgres_listen import Listener
from tidemill.adapters.postgres_notify import Notifier
from tidemill.adapters.postgres_site import Site, connect
from tidemill.adapters.postgres_sync import (
    PostgresChannel,
    SyncPool,
    apply_migrations,
    missing_steps,
)
from tidemill.adapters.postgres_url import Prepared, read_prepared, read_url
from tidemill.drivers.footing import Footing
from tidemill.drivers.postgres_session import (
    LOCK_TIMEOUT,
    STATEMENT_TIMEOUT,
    Limits,
    beginnings,
)
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.postgres import DEFAULT_SCHEMA, PostgresDialect
from tidemill.sql.programs.env import Env
from tidemill.store.contract import Capabilities, Clock, Operation, SyncChannel
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.doctor import DatabaseHealth

R = TypeVar("R")

ASYNC_POOL: Final = 8
SYNC_POOL: Final = 4
_OPTIONS: Final = frozenset({"schema", "prepared_statements", "hints"})


class PostgresStore(ConnectedStore[Site, "Connections"]):
    """A store in one schema of a PostgreSQL database, for any number of processes and hosts.

    Args:
        url: `postgresql://user:password@host:5432/database`, with libpq's options.
        clock: what stands for the store's time in tests; the server's own clock by default.
        bounds: the largest of everything.
        schema: where the tables are.
        prepared_statements: `auto` keeps statements prepared on their connections; `off` is for
            poolers that hand connections around and do not know prepared statements, such as
            pgbouncer below 1.21 in transaction mode.
        async_pool: the most connections on one event loop, beside two for a worker's own calls.
        sync_pool: the most connections for synchronous callers of one process.
        statement_timeout: how long one statement may take.
        lock_timeout: how long one statement may wait for a lock.
        hints: notify other processes of new work, and listen for theirs (default on). Off, a
            worker hears of what its own process did, and finds the rest by polling.
        listen_url: where to listen if `url` leads through a pooler. With `prepared_statements`
            off, which says that it does, nothing is listened to without it.
        auto_migrate: bring the schema up to date at first use; by default `tidemill migrate` has
            to, since several hosts use it.

    Raises:
        ConfigurationError: a URL, schema or option that cannot work.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
        schema: str = DEFAULT_SCHEMA,
        prepared_statements: Prepared = "auto",
        async_pool: int = ASYNC_POOL,
        sync_pool: int = SYNC_POOL,
        statement_timeout: timedelta = STATEMENT_TIMEOUT,
        lock_timeout: timedelta = LOCK_TIMEOUT,
        hints: bool = True,
        listen_url: str | None = None,
        auto_migrate: bool = False,
    ) -> None:
        catalogue = Catalogue(PostgresDialect(schema))
        where = read_url(url)
        direct = where if listen_url is None else read_url(listen_url)
        prepared = read_prepared(prepared_statements)
        limits = Limits(statement_timeout, lock_timeout)

        def speak() -> PsycopgExecutor:
            return PsycopgExecutor(connect(direct, prepared), catalogue, beginnings(limits))

        site = Site(
            url=where,
            catalogue=catalogue,
            env=Env(catalogue.dialect, bounds),
            clock=clock,
            prepared=prepared,
            limits=limits,
            direct=direct,
            notifier=Notifier(f"{schema}_wake", speak, enabled=hints),
            auto_migrate=auto_migrate,
        )
        super().__init__(site, lambda site: Connections(site, async_pool, sync_pool))
        self._listens = hints and (prepared == "auto" or listen_url is not None)

    @classmethod
    def from_url(
        cls, url: str, *, clock: Clock | None = None, bounds: Bounds = DEFAULT_BOUNDS
    ) -> Self:
        """The store of a URL that may carry `schema`, `prepared_statements` and `hints=off`."""
        where = read_url(url, _OPTIONS)
        options = where.options
        return cls(
            where.libpq,
            clock=clock,
            bounds=bounds,
            schema=options.get("schema", DEFAULT_SCHEMA),
            prepared_statements=read_prepared(options.get("prepared_statements", "auto")),
            hints=options.get("hints", "on") != "off",
        )

    def __repr__(self) -> str:
        return f"<PostgresStore {self._site.url.shown}>"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(name=PRODUCT, hints=True, persistent=True, bridges=True)

    def footing(self) -> Footing:
        site = self._site
        return Footing(
            database=PRODUCT,
            catalogue=site.catalogue,
            env=site.env,
            clock=site.clock,
            lock_wait=site.limits.lock or LOCK_TIMEOUT,
            riding=site.riding,
        )

    async def perform(self, operation: Operation[R]) -> R:
        return await self._open().coroutines.perform(operation)

    def perform_sync(self, operation: Operation[R]) -> R:
        return self._open().threads.perform(operation)

    @contextmanager
    def dedicated(self) -> Generator[SyncChannel]:
        process = os.getpid()
        executor = self._site.open_sync()

        @contextmanager
        def lend() -> Generator[PsycopgExecutor]:
            yield executor

        try:
            yield PostgresChannel(self._site, lend)
        finally:
            if os.getpid() == process:
                executor.close()
            else:
                _abandoned.append(executor)

    def watch(self, wake: Wake) -> Callable[[], None]:
        stop = self._site.hints.add(wake)
        if self._listens:
            self._open().listen()
        return stop

    def migrate(self) -> tuple[str, ...]:
        return apply_migrations(self._site)

    def plan(self) -> tuple[tuple[str, str], ...]:
        return self._shown(missing_steps(self._site))

    def examine(self) -> DatabaseHealth:
        return examine(self._site)

    def looking(self) -> AbstractContextManager[SyncChannel]:
        return nullcontext(self._open().threads)

    def forget_parent(self) -> None:
        """As every store does; and keep what the parent opened from being ended as garbage."""
        _abandoned.append(self._opened)
        super().forget_parent()
        self._site.notifier.forget_parent()


class Connections:
    """What one process has open: a pool for threads, pools for each event loop, and a listener."""

    def __init__(self, site: Site, async_pool: int, sync_pool: int) -> None:
        self._process = os.getpid()
        self._site = site
        self._pool = SyncPool(site.open_sync, sync_pool)
        self._listener: Listener | None = None
        self._lock = Lock()
        self.coroutines = AsyncChannels(site, async_pool)
        self.threads = PostgresChannel(site, self._pool.lend)

    def listen(self) -> None:
        """Hear what other processes notify, from the first call on."""
        site = self._site
        with self._lock:
            if self._listener is None:
                self._listener = Listener(
                    site.notifier.channel,
                    lambda: connect(site.direct, site.prepared),
                    site.hints.give,
                )

    def stop(self) -> None:
        """Close everything, in the process that opened it."""
        if os.getpid() != self._process:
            return
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.stop()
        self._site.notifier.stop()
        self._pool.close()
        self.coroutines.close()


_abandoned: list[object] = []
"""A parent's connections, kept for ever: ending one here would end it there."""
