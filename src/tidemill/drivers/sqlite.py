"""Programs on a connection of the standard library's `sqlite3`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tidemill.drivers.sqlite_errors import translated
from tidemill.errors import ConfigurationError, StoreUnavailable
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row, Statement
from tidemill.store.contract import Clock

OLDEST: Final = (3, 40, 0)
LONG_WAIT: Final = timedelta(seconds=1)
"""Waiting this long for the write lock counts as a time when nobody could write (clause C10)."""


def require_version() -> None:
    """Refuse an SQLite library that is too old.

    Raises:
        ConfigurationError: it is.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        message = (
            f"This Python is linked with SQLite {sqlite3.sqlite_version}, and Tidemill needs "
            f"{wanted} or newer. Use a newer Python or system library."
        )
        raise ConfigurationError(message)


@dataclass(slots=True)
class Blockage:
    """Since when, on the monotonic clock, this process has waited for the write lock in vain.

    Shared by the connections of a store: a heart that gave up waiting is remembered by the next
    connection that gets the lock.
    """

    since: float | None = None

    def waited_from(self, started: float) -> float:
        since = self.since
        return started if since is None else min(since, started)

    def gave_up(self, started: float) -> None:
        self.since = self.waited_from(started)

    def ended(self) -> None:
        self.since = None


class SqliteExecutor:
    """One connection in autocommit mode; transactions are begun and ended here alone.

    The store's clock is the host's, read as a statement that asks for it is run: that is after
    `begin`, so after the write lock was granted (clause A1). A long wait for that lock is written
    down, in the very transaction that waited, for every sweep on this database to heed.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        catalogue: Catalogue,
        clock: Clock,
        blockage: Blockage | None = None,
    ) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self._catalogue = catalogue
        self._clock = clock
        self._blockage = blockage

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def begin(self, *, write: bool) -> None:
        if not write:
            self._execute("BEGIN DEFERRED")
            return
        started = time.monotonic()
        try:
            self._execute("BEGIN IMMEDIATE")
        except StoreUnavailable:
            if self._blockage is not None:
                self._blockage.gave_up(started)
            raise
        if self._blockage is not None:
            self._mark_long_wait(self._blockage, started)

    def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        if isinstance(step, Batch):
            return self._run_each(step)
        try:
            sql, values = self._catalogue.bind(step.name, step.params, self._clock)
            return self._connection.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise translated(error, step.name) from error

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # SQLite has rolled back by itself, or will when the connection is closed.
            return

    def close(self) -> None:
        self._connection.close()

    def _run_each(self, batch: Batch) -> Sequence[Row]:
        try:
            sql, values = self._catalogue.bind_each(batch.name, batch.rows)
            self._connection.executemany(sql, values)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise translated(error, batch.name) from error
        return ()

    def _execute(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except sqlite3.Error as error:
            raise translated(error, sql.lower()) from error

    def _mark_long_wait(self, blockage: Blockage, started: float) -> None:
        waited = time.monotonic() - blockage.waited_from(started)
        if waited >= LONG_WAIT.total_seconds():
            self.step(Statement("mark_unwritable", {"until": self._clock()}))
        blockage.ended()
