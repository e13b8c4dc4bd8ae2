"""Programs on a connection of psycopg 3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.array import ListBinaryDumper

from tidemill.drivers.postgres_errors import translated
from tidemill.drivers.postgres_instants import instant_of
from tidemill.drivers.postgres_session import PostgresSession, answer_may_be_lost
from tidemill.errors import TidemillError
from tidemill.sql.program import Batch, Row, Statement

Connection = psycopg.Connection[Any]
_BAD_VALUES = (OverflowError, UnicodeEncodeError)
_DOOR: Final = {
    "authentication failed": "28P01",
    "no pg_hba.conf entry": "28000",
    "FATAL:  role": "28000",
    "FATAL:  database": "3D000",
    "too many clients": "53300",
}
_int8: Final = Struct("!q")


class UtcLoader(Loader):
    """Instants in UTC whatever the session's zone: another zone has no room for the last hours."""

    format = Format.BINARY

    def load(self, data: Any) -> datetime:
        return instant_of(_int8.unpack(data)[0])


class PsycopgExecutor(PostgresSession[Connection]):
    """One connection of our own."""

    @cached_property
    def _cursor(self) -> psycopg.RawCursor[DictRow]:
        connection = self._connection
        connection.adapters.register_loader("timestamptz", UtcLoader)
        # Columns of a batch go out as bytes: quoting them as text costs three times as much.
        connection.adapters.register_dumper(list, ListBinaryDumper)
        return psycopg.RawCursor(connection, row_factory=dict_row)

    @property
    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status is not TransactionStatus.IDLE

    @property
    def usable(self) -> bool:
        """Whether the connection is there, with no transaction open on it."""
        return not self._connection.closed and not self.in_transaction

    @property
    def broken(self) -> bool:
        """Whether the connection is gone."""
        return bool(self._connection.closed)

    def begin(self, *, write: bool) -> None:
        self._say(self._beginnings[write], "begin")

    def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        try:
            sql, values = self._bind(step)
            cursor = self._cursor.execute(sql.encode(), values, binary=True)
            return cursor.fetchall() if cursor.description is not None else ()
        except (psycopg.Error, *_BAD_VALUES) as error:
            raise error_of(error, step.name) from error

    def commit(self) -> None:
        with answer_may_be_lost(self):
            self._say("COMMIT", "commit")

    def rollback(self) -> None:
        """Undo; a connection that cannot is closed, and the server undoes the rest."""
        if self.usable:
            return
        try:
            self._connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()

    def _say(self, sql: str, doing: str) -> None:
        try:
            self._connection.execute(sql.encode(), prepare=False)
        except psycopg.Error as error:
            raise error_of(error, doing) from error


def refused_at_the_door(error: psycopg.Error, doing: str) -> TidemillError:
    """The error to raise when a connection cannot be opened.

    The client library drops the SQLSTATE of a refusal, and all that is left of it is its text;
    where that is in another language, the refusal counts as a failed connection.
    """
    text = str(error)
    state = next((state for said, state in _DOOR.items() if said in text), None)
    return translated(state, text.strip(), doing)


def error_of(error: Exception, doing: str) -> TidemillError:
    """The error to raise in place of one of psycopg's."""
    return translated(state_of(error), str(error).strip() or type(error).__name__, doing)


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of an error; None where the database has not answered with one."""
    if isinstance(error, _BAD_VALUES):
        return "22000"
    if isinstance(error, psycopg.DataError):
        return error.sqlstate or "22000"
    return error.sqlstate if isinstance(error, psycopg.Error) else None
