"""Programs on a connection of psycopg 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.array import ListBinaryDumper

from tidemill.drivers.postgres_errors import translated
from tidemill.drivers.postgres_instants import instant_of
from tidemill.errors import AnswerLost, StoreUnavailable, TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row, Statement
from tidemill.store.contract import Clock

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


class PsycopgExecutor:
    """One connection of our own.

    Args:
        connection: in autocommit, with no transaction open.
        catalogue: of the PostgreSQL dialect.
        beginnings: how a transaction begins, by whether it writes.
        clock: what stands for the store's clock in tests; None asks the server's.
    """

    def __init__(
        self,
        connection: Connection,
        catalogue: Catalogue,
        beginnings: Mapping[bool, str],
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._beginnings = beginnings
        self._clock = clock or _no_clock
        connection.adapters.register_loader("timestamptz", UtcLoader)
        # Columns of a batch go out as bytes: quoting them as text costs three times as much.
        connection.adapters.register_dumper(list, ListBinaryDumper)
        self._cursor = psycopg.RawCursor(connection, row_factory=dict_row)

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
            if isinstance(step, Batch):
                sql, values = self._catalogue.bind_columns(step.name, step.rows)
            else:
                sql, values = self._catalogue.bind(step.name, step.params, self._clock)
            cursor = self._cursor.execute(sql.encode(), values, binary=True)
            return cursor.fetchall() if cursor.description is not None else ()
        except (psycopg.Error, *_BAD_VALUES) as error:
            raise error_of(error, step.name) from error

    def commit(self) -> None:
        try:
            self._say("COMMIT", "commit")
        except StoreUnavailable as error:
            if self._connection.closed:
                message = f"The connection broke before a commit was answered: {error}"
                raise AnswerLost(message) from error
            raise

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
    state = "22000" if isinstance(error, _BAD_VALUES) else getattr(error, "sqlstate", None)
    if state is None and isinstance(error, psycopg.DataError):
        state = "22000"
    return translated(state, str(error).strip() or type(error).__name__, doing)


def _no_clock() -> Any:
    return None
