"""One connection to an SQLite store: it performs operations, and looks whether others wrote."""

from __future__ import annotations

import ctypes
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tidemill.adapters.hints import Hints, is_news
from tidemill.adapters.patience import Tries
from tidemill.adapters.sqlite_files import SCHEME, Settings, connect, identity
from tidemill.adapters.sqlite_forks import calls_sqlite
from tidemill.drivers.run import run
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.drivers.sqlite_blockage import Blockage
from tidemill.errors import SchemaError, StoreError, StoreUnavailable
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.migrations import Migration, migrate, migrations, missing
from tidemill.sql.program import Program, Statement
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import glance_for, program_for, writes
from tidemill.store.contract import Clock, Operation
from tidemill.values.urls import migrating

R = TypeVar("R")

_log = logging.getLogger("tidemill.store")

DIALECT: Final = "sqlite"
BUSY: Final = Tries(most=2, first=0.05, longest=0.05)
"""Each try of a transaction waits the whole busy time-out for the write lock."""
POLL_SECONDS: Final = 0.04
"""How often the file is asked whether another process wrote, while somebody watches."""


@dataclass(slots=True)
class Past:
    """What a store has met: once it had a database, an empty file in its place is a fault."""

    had_schema: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """What all connections of one store share."""

    settings: Settings
    catalogue: Catalogue
    clock: Clock
    env: Env
    auto_migrate: bool
    hints: Hints = field(default_factory=Hints)
    blockage: Blockage = field(default_factory=Blockage)
    past: Past = field(default_factory=Past)

    @calls_sqlite
    def open(self) -> SqliteChannel:
        """A connection whose schema fits, after bringing the schema up to date if asked to.

        A store that has had a database before neither makes its file anew nor fills an empty one:
        whoever removed it may be about to put another in its place.

        Raises:
            SchemaError: the schema is missing, too old or too new.
            StoreUnavailable: the database that was there is gone.
        """
        channel = self._open_again() if self.past.had_schema else self.open_unchecked()
        try:
            steps = channel.missing()
            if self.past.had_schema and len(steps) == len(migrations(DIALECT)):
                message = f"{self.settings.path} was replaced by a file without Tidemill's tables."
                raise StoreUnavailable(f"{message} {self.put_back}")
            if steps and not self.auto_migrate:
                names = ", ".join(step.name for step in steps)
                message = f"The schema lacks {names}: run `{self._migrating}`."
                raise SchemaError(message)
            if steps:
                channel.migrate()
        except BaseException:
            channel.close()
            raise
        self.past.had_schema = True
        return channel

    @property
    def put_back(self) -> str:
        """What to do about a database that is gone."""
        return (
            "Put the database back and work goes on; to begin with an empty one, run "
            f"`{self._migrating}`."
        )

    @property
    def _migrating(self) -> str:
        return migrating(f"{SCHEME}{self.settings.path}")

    def _open_again(self) -> SqliteChannel:
        if identity(self.settings.path) is None:
            raise StoreUnavailable(f"{self.settings.path} is gone. {self.put_back}")
        return SqliteChannel(self, BUSY.patiently(lambda: connect(self.settings, create=False)))

    @calls_sqlite
    def open_unchecked(self) -> SqliteChannel:
        """A connection, whatever the schema: to plan or apply migrations."""
        return SqliteChannel(self, BUSY.patiently(lambda: connect(self.settings)))


class SqliteChannel:
    """Performs operations on its one connection, blocking the thread that asks."""

    def __init__(self, site: Site, connection: sqlite3.Connection) -> None:
        self._site = site
        self._connection = connection
        self._executor = SqliteExecutor(connection, site.catalogue, site.clock, site.blockage)
        # Steps of a migration run before there is a table to note a long wait in.
        self._builder = SqliteExecutor(connection, site.catalogue, site.clock)
        self._file = identity(site.settings.path)
        self._version: int | None = None
        self._asked_at = 0.0

    @calls_sqlite
    def perform(self, operation: Operation[R]) -> R:
        """Glance first where that may do, and take the write lock only if something is to do.

        Raises:
            StoreUnavailable: the database file was removed or replaced since the last time. The
                next call tries the file that is there then.
        """
        self._require_file()
        if not writes(operation):
            return self.read(operation)
        answer = self.glance(operation)
        return self.write(operation) if answer is None else answer

    def glance(self, operation: Operation[R]) -> R | None:
        """The answer to an operation that turns out to have nothing to write, else None."""

        def look() -> R | None:
            program = glance_for(operation, self._site.env)
            return None if program is None else run(program, self._executor, write=False)

        return BUSY.patiently(look)

    def read(self, operation: Operation[R]) -> R:
        program = self._program(operation)
        return BUSY.patiently(lambda: run(program(), self._executor, write=False))

    def write(self, operation: Operation[R]) -> R:
        program = self._program(operation)
        answer = BUSY.patiently(
            lambda: run(program(), self._executor, write=True, patiently=BUSY.patiently)
        )
        if is_news(operation, answer):
            self._site.hints.give()
        return answer

    @calls_sqlite
    def migrate(self) -> tuple[str, ...]:
        dialect = self._site.catalogue.dialect.name
        return BUSY.patiently(lambda: run(migrate(dialect), self._builder, write=True))

    @calls_sqlite
    def missing(self) -> tuple[Migration, ...]:
        dialect = self._site.catalogue.dialect.name
        return BUSY.patiently(lambda: run(missing(dialect), self._builder, write=False))

    @calls_sqlite
    def look_for_others(self) -> None:
        """Give a hint if another connection has committed since the last look.

        Commits of this connection do not count: what they made ready was told when it was made.
        """
        if not self._site.hints.watched:
            self._version = None
            return
        now = time.monotonic()
        if self._version is not None and now - self._asked_at < POLL_SECONDS:
            return
        self._asked_at = now
        try:
            version = self._executor.step(Statement("data_version"))[0]["data_version"]
        except StoreError:
            return  # the next operation will meet it too, and has someone to tell
        before, self._version = self._version, version
        if before not in {None, version}:
            self._site.hints.give()

    def _require_file(self) -> None:
        """Whoever writes to a removed file writes into nothing, and SQLite does not mind."""
        path = self._site.settings.path
        if self._file is None:
            self._use(self._site.open())
        there = identity(path)
        if there == self._file:
            return
        self._file = None
        self._connection.close()
        what = "removed" if there is None else "replaced by another file"
        message = f"{path} was {what} while it was open; what was in it is lost to this process."
        _log.error(message)
        raise StoreUnavailable(f"{message} {self._site.put_back}")

    def _use(self, other: SqliteChannel) -> None:
        """Go on with the connection of another channel."""
        self._connection, self._file = other._connection, other._file
        self._executor, self._builder = other._executor, other._builder
        self._version = None

    @calls_sqlite
    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        """Leave the connection of a parent process as it is, for ever.

        Closing it in a forked child would drop the parent's locks (sqlite.org/howtocorrupt.html,
        section 2.6), and so would its end as garbage: it is given a reference that nobody drops.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))

    def _program(self, operation: Operation[R]) -> Callable[[], Program[R]]:
        return lambda: program_for(operation, self._site.env)
