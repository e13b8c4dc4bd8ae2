"""Programs in a transaction of the user's, on a connection of `sqlite3` or of aiosqlite."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tidemill.drivers.inside_errors import explaining, of_sqlite
from tidemill.drivers.run_inside import SAVEPOINT, Act, Say, called
from tidemill.errors import TransactionRefused
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row
from tidemill.store.contract import Clock

if TYPE_CHECKING:
    import aiosqlite


class ReadsText(Protocol):
    """A connection, as far as it says what text is read as."""

    text_factory: Any


class SqliteSteps:
    """A connection with a transaction open on it, or one that begins by itself."""

    def __init__(self, connection: sqlite3.Connection, catalogue: Catalogue, clock: Clock) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._cursor.row_factory = sqlite3.Row
        self._catalogue = catalogue
        self._clock = clock

    def step(self, act: Act, /) -> Sequence[Row]:
        with explaining(of_sqlite, called(act)), plain_text(self._connection):
            if isinstance(act, Say):
                require_open(self._connection, act)
                self._cursor.execute(act.sql).fetchall()
                return ()
            if isinstance(act, Batch):
                sql, runs = self._catalogue.bind_each(act.name, act.rows)
                return ({"count": self._cursor.executemany(sql, runs).rowcount},)
            sql, values = self._catalogue.bind(act.name, act.params, self._clock)
            return self._cursor.execute(sql, values).fetchall()


class AiosqliteSteps:
    """The same on aiosqlite, awaited; `cursor` is one of the connection's, for this alone."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        cursor: aiosqlite.Cursor,
        catalogue: Catalogue,
        clock: Clock,
    ) -> None:
        cursor.row_factory = sqlite3.Row
        self._connection = connection
        self._cursor = cursor
        self._catalogue = catalogue
        self._clock = clock

    async def step(self, act: Act, /) -> Sequence[Row]:
        cursor = self._cursor
        with explaining(of_sqlite, called(act)), plain_text(self._connection):
            if isinstance(act, Say):
                require_open(self._connection, act)
                await cursor.execute(act.sql)
                await cursor.fetchall()
                return ()
            if isinstance(act, Batch):
                sql, runs = self._catalogue.bind_each(act.name, act.rows)
                await cursor.executemany(sql, runs)
                return ({"count": cursor.rowcount},)
            sql, values = self._catalogue.bind(act.name, act.params, self._clock)
            await cursor.execute(sql, values)
            return list(await cursor.fetchall())


class TellsOfTransactions(Protocol):
    """A connection, as far as it says whether a transaction is open on it."""

    @property
    def in_transaction(self) -> bool:
        """Whether one is."""
        ...


def require_open(connection: TellsOfTransactions, act: Say) -> None:
    """Refuse a savepoint outside any transaction: it would be one, and its release would commit.

    Not every connection says before that it commits each statement by itself. One that does not has
    begun a transaction by now, since the write lock was taken.

    Raises:
        TransactionRefused: no transaction is open.
    """
    if act == SAVEPOINT and not connection.in_transaction:
        message = (
            "This connection to SQLite has no transaction open and commits each statement by "
            "itself, so a rollback would not undo what is written of the job; nothing was written. "
            'Begin one before, with "BEGIN IMMEDIATE", or connect without autocommit=True.'
        )
        raise TransactionRefused(message)


@contextmanager
def plain_text(connection: ReadsText) -> Generator[None]:
    """Around one step: text is read as `str`, whatever the application reads it as.

    It is a setting of the connection, not of a cursor, so it is put back at once.
    """
    factory = connection.text_factory
    if factory is str:
        yield
        return
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = factory
