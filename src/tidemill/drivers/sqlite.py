"""Programs on a connection of the standard library's `sqlite3`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

from tidemill.core.writable import Shared, after_look
from tidemill.drivers.sqlite_blockage import Blockage, elapsed
from tidemill.drivers.sqlite_errors import disk_failed, translated
from tidemill.errors import ConfigurationError, StoreUnavailable, TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row, Statement
from tidemill.sql.programs.env import UNWRITABLE_UNTIL
from tidemill.store.contract import Clock

OLDEST: Final = (3, 40, 0)
_NO_TEXT: Final = "Could not decode to UTF-8"


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


@dataclass(frozen=True, slots=True)
class Writing:
    """A transaction that holds the write lock.

    Attributes:
        started: when it began to wait, on the process's own clock.
        at, now: when it got the lock, on that clock and on the store's.
        changes: how many rows the connection had changed before it.
    """

    started: float
    at: float
    now: datetime
    changes: int


class SqliteExecutor:
    """One connection in autocommit mode; transactions are begun and ended here alone.

    The store's clock is the host's, read as a statement that asks for it is run: that is after
    `begin`, so after the write lock was granted (clause A1). A long wait for that lock is written
    down, in the very transaction that waited, for every sweep on this database to heed; and this
    process's own sweeps are told since when it knows that the lock can be had (clause C10).
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
        self._notes_long_wait = False
        self._writing: Writing | None = None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def begin(self, *, write: bool) -> None:
        if not write:
            self._execute("BEGIN DEFERRED")
            return
        self._writing = None
        started = elapsed()
        try:
            self._execute("BEGIN IMMEDIATE")
        except StoreUnavailable:
            if self._blockage is not None:
                self._blockage.gave_up(started)
            raise
        if self._blockage is not None:
            self._look(self._blockage, started)

    def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        if isinstance(step, Batch):
            return self._run_each(step)
        rows = self._run_one(step)
        if step.name == UNWRITABLE_UNTIL and self._blockage is not None:
            return self._with_own_knowledge(rows, step, self._blockage)
        return rows

    def commit(self) -> None:
        self._execute("COMMIT")
        writing, self._writing = self._writing, None
        if writing is None or self._blockage is None:
            return
        if self._connection.total_changes > writing.changes:
            self._blockage.wrote(writing.at, writing.now)
        if self._notes_long_wait:
            self._notes_long_wait = False
            self._blockage.noted()

    def rollback(self) -> None:
        self._notes_long_wait = False
        self._writing = None
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # SQLite has rolled back by itself, or will when the connection is closed.
            return

    def close(self) -> None:
        self._connection.close()

    def _run_one(self, step: Statement) -> Sequence[Row]:
        try:
            sql, values = self._catalogue.bind(step.name, step.params, self._clock)
            return self._fetch(sql, values)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise self._told(error, step.name) from error

    def _fetch(self, sql: str, values: Sequence[object]) -> Sequence[Row]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if not (sql.startswith("SELECT") and str(error).startswith(_NO_TEXT)):
                raise
        # One text of one row is no UTF-8. It is read as bytes, for its reader to see, at the price
        # of a call for every text: so only where it has to be.
        self._connection.text_factory = _text_or_bytes
        try:
            return self._connection.execute(sql, values).fetchall()
        finally:
            self._connection.text_factory = str

    def _run_each(self, batch: Batch) -> Sequence[Row]:
        try:
            sql, values = self._catalogue.bind_each(batch.name, batch.rows)
            count = self._connection.executemany(sql, values).rowcount
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise self._told(error, batch.name) from error
        return ({"count": count},)

    def _execute(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except sqlite3.Error as error:
            raise self._told(error, sql.lower()) from error

    def _told(self, error: Exception, doing: str) -> TidemillError:
        """The error to raise instead; a write that the disk did not take is remembered."""
        told = translated(error, doing)
        if self._blockage is not None and self._writing is not None and disk_failed(error):
            self._blockage.failed(self._writing.started)
        return told

    def _look(self, blockage: Blockage, started: float) -> None:
        """The lock is granted: note in this transaction if it took long, and look if it commits."""
        at, now = elapsed(), self._clock()
        self._writing = Writing(started, at, now, self._connection.total_changes)
        waited = blockage.granted(started, at)
        if waited:
            self._notes_long_wait = True
            self._set_meta(UNWRITABLE_UNTIL, now)
            self._set_meta("unwritable_for", timedelta(seconds=waited))
        if blockage.shares(at):
            shared = after_look(self._shared(), now)
            self._set_meta("looked_at", shared.looked_at)
            if shared.since == now:
                self._set_meta("writable_since", shared.since)

    def _set_meta(self, name: str, value: datetime | timedelta) -> None:
        self.step(Statement("set_meta", {"name": name, "value": value}))

    def _shared(self) -> Shared | None:
        instant = self._catalogue.dialect.instant
        rows = self.step(Statement("shared_looks"))
        said = {row["name"]: instant(row["value"]) for row in rows}
        if not said:
            return None
        return Shared(said["looked_at"], said["writable_since"])

    def _with_own_knowledge(
        self, noted: Sequence[Row], step: Statement, blockage: Blockage
    ) -> Sequence[Row]:
        """The later of what anyone has noted and what this process knows by itself."""
        lease = cast("timedelta", step.params["lease"])
        dialect = self._catalogue.dialect
        now = self._clock()
        until = blockage.writable_since(elapsed(), now, lease)
        shared = self._shared()
        if shared is not None:
            until = min(until, shared.vouches_since(now, lease))
        if noted and self._could_cost(lease):
            until = max(until, dialect.instant(noted[0]["value"]))
        return ({"value": dialect.encode(until)},)

    def _could_cost(self, lease: timedelta) -> bool:
        """Whether the noted wait was long enough to cost a well worker such a lease.

        A heart has two thirds of the lease to get one beat through, so waits of up to a half leave
        it alive: without this, an application's ordinary transactions could put recovery off for
        ever.
        """
        rows = self.step(Statement("noted_wait"))
        return not rows or self._catalogue.dialect.duration(rows[0]["value"]) > lease / 2


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored
