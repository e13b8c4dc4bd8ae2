"""What all connections of one PostgreSQL store share, and how each is opened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast

import asyncpg
import psycopg

from tidemill.adapters.hints import Hints, is_news
from tidemill.adapters.patience import Tries
from tidemill.adapters.postgres_notify import Notifier
from tidemill.adapters.postgres_silence import BoundedConnection
from tidemill.adapters.postgres_url import PostgresUrl, Prepared
from tidemill.drivers import asyncpg as asyncpg_driver
from tidemill.drivers import psycopg as psycopg_driver
from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.postgres_session import UNHURRIED, Limits, beginnings
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.errors import SchemaError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.postgres import DEFAULT_SCHEMA
from tidemill.sql.migrations import FIRST, Migration
from tidemill.sql.program import Statement
from tidemill.sql.programs.env import Env
from tidemill.store.contract import Clock, Operation
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Maintain
from tidemill.values.leases import Maintained
from tidemill.values.urls import migrating

R = TypeVar("R")

BUSY: Final = Tries(most=4, first=0.02, longest=0.5)
CONNECT_SECONDS: Final = 10
SILENCE_SECONDS: Final = 5.0
"""How much longer than the server's own limit an answer is waited for: then the peer is gone."""
CALM_SECONDS: Final = 5.0
_ASYNC_CACHE: Final = 256
# A peer that vanished is noticed in about half a minute, whoever waits for it.
_KEEPALIVE: Final[dict[str, Any]] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "connect_timeout": CONNECT_SECONDS,
}


class Calm:
    """Upkeep that found nothing a moment ago is answered without asking again.

    Every node of a fleet asks once a second, and a lease lasts a minute: so one process asks the
    server once in five seconds while there is nothing to do. On a clock of a test's own every
    question is asked.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._until = 0.0

    def answer(self, operation: Operation[R]) -> R | None:
        """The answer to upkeep that would find nothing, most likely; else None."""
        if isinstance(operation, Maintain) and time.monotonic() < self._until:
            return cast("R", Maintained())
        return None

    def found_nothing(self, operation: Operation[R]) -> None:
        """A glance has just found that there is nothing to do."""
        if self._enabled and isinstance(operation, Maintain):
            self._until = time.monotonic() + CALM_SECONDS


@dataclass(slots=True)
class Site:
    """The database, the catalogue, and what this process knows of both."""

    url: PostgresUrl = field(repr=False)
    catalogue: Catalogue
    env: Env
    clock: Clock | None
    prepared: Prepared
    limits: Limits
    direct: PostgresUrl = field(repr=False)
    notifier: Notifier
    auto_migrate: bool
    hints: Hints = field(default_factory=Hints)
    checked: bool = False
    calm: Calm = field(init=False)

    def __post_init__(self) -> None:
        self.calm = Calm(enabled=self.clock is None)

    @property
    def silence(self) -> float:
        """Seconds after which an answer will not come any more."""
        return self.limits.statement.total_seconds() + SILENCE_SECONDS

    async def open_async(self) -> AsyncpgExecutor:
        """A connection of asyncpg.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        try:
            connection = await asyncpg.connect(
                self.url.asyncpg,
                timeout=CONNECT_SECONDS,
                command_timeout=self.silence,
                statement_cache_size=_ASYNC_CACHE if self.prepared == "auto" else 0,
            )
        except (*asyncpg_driver.FAULTS, TimeoutError) as error:
            raise asyncpg_driver.error_of(error, f"connect to {self.url.shown}") from error
        return AsyncpgExecutor(connection, self.catalogue, beginnings(self.limits), self.clock)

    def open_sync(self, *, hurried: bool = True) -> PsycopgExecutor:
        """A connection of psycopg; unhurried, without limits, for migrations.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        limits = self.limits if hurried else UNHURRIED
        connection = connect(self.url, self.prepared)
        connection.silence = self.silence if hurried else None
        return PsycopgExecutor(connection, self.catalogue, beginnings(limits), self.clock)

    def riding(self, operation: Operation[R], answer: R) -> Sequence[Statement]:
        """What an operation in a transaction of the user's says in it, to be heard at its commit.

        Nobody knows when that is, so nothing is promised for later.
        """
        if is_news(operation, answer) and self.notifier.rides():
            return (self.notifier.notice,)
        return ()

    @property
    def _migrating(self) -> str:
        schema = self.catalogue.dialect.fragments["schema"]
        query = "" if schema == DEFAULT_SCHEMA else f"?schema={schema}"
        return migrating(self.url.libpq, query)

    def require(self, steps: Sequence[Migration]) -> None:
        """Refuse a schema that lacks something.

        Raises:
            SchemaError: it does; the message names the command.
        """
        if steps and steps[0].version == FIRST:
            schema = self.catalogue.dialect.fragments["schema"]
            message = (
                f"{self.url.shown}: this database has no Tidemill tables in its schema "
                f'"{schema}". Check the URL, or run `{self._migrating}` to make them.'
            )
            raise SchemaError(message)
        if steps:
            names = ", ".join(step.name for step in steps)
            message = f"The schema in {self.url.shown} lacks {names}: run `{self._migrating}`."
            raise SchemaError(message)
        self.checked = True


def connect(url: PostgresUrl, prepared: Prepared) -> BoundedConnection:
    """A bare connection of psycopg in autocommit.

    Raises:
        StoreUnavailable: the server does not answer.
    """
    try:
        return BoundedConnection.connect(
            url.libpq,
            autocommit=True,
            prepare_threshold=0 if prepared == "auto" else None,
            **_KEEPALIVE,
        )
    except psycopg.Error as error:
        doing = f"connect to {url.shown}"
        raise psycopg_driver.refused_at_the_door(error, doing) from error


class Announcement(Generic[R]):
    """Telling that an operation left work: this process at once, others by the notifier."""

    def __init__(self, site: Site, operation: Operation[R]) -> None:
        self._site = site
        self._operation = operation
        self._notified = False

    @property
    def due(self) -> bool:
        """Whether the operation's own transaction has to notify if it makes work."""
        return isinstance(self._operation, Enqueue) and self._site.notifier.due

    def closing(self, answer: R) -> Sequence[Statement]:
        """What is said in the operation's own last transaction."""
        notifier = self._site.notifier
        if is_news(self._operation, answer) and notifier.first():
            self._notified = True
            return (notifier.notice,)
        return ()

    def committed(self, answer: R) -> R:
        """Tell whoever has not been told; hands the answer on."""
        if is_news(self._operation, answer):
            self._site.hints.give()
            if not self._notified:
                self._site.notifier.later()
        return answer
