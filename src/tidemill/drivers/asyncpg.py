"""Programs on a connection of asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import asyncpg

from tidemill.drivers.postgres_errors import translated
from tidemill.drivers.postgres_instants import instant_of_tuple, tuple_of
from tidemill.errors import AnswerLost, StoreUnavailable, TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row, Statement
from tidemill.store.contract import Clock

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
FAULTS = (
    asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError,
)  # fmt: skip
_BAD_VALUES = (asyncpg.DataError, UnicodeEncodeError)


class AsyncpgExecutor:
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
        self._reads_all_instants = False

    @property
    def usable(self) -> bool:
        """Whether the connection is there, with no transaction open on it."""
        return not self.broken and not self._connection.is_in_transaction()

    @property
    def broken(self) -> bool:
        """Whether the connection is gone."""
        return self._connection.is_closed()

    async def begin(self, *, write: bool) -> None:
        try:
            await self._connection.execute(self._beginnings[write])
        except FAULTS as error:
            raise self._told(error, "begin") from error

    async def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        try:
            if isinstance(step, Batch):
                sql, values = self._catalogue.bind_columns(step.name, step.rows)
            else:
                sql, values = self._catalogue.bind(step.name, step.params, self._clock)
            return await self._connection.fetch(sql, *values)
        except OverflowError as error:
            if self._reads_all_instants:
                raise self._told(error, step.name) from error
            await self._read_all_instants()
            message = f"An instant beyond the calendar was met at {step.name!r}. Read it again."
            raise StoreUnavailable(message) from error
        except _BAD_VALUES + FAULTS as error:
            raise self._told(error, step.name) from error

    async def _read_all_instants(self) -> None:
        """From now on, at the price of a call for each: asyncpg's own reader fails at some."""
        self._reads_all_instants = True
        await self._connection.set_type_codec(
            "timestamptz",
            schema="pg_catalog",
            format="tuple",
            encoder=tuple_of,
            decoder=instant_of_tuple,
        )

    async def commit(self) -> None:
        try:
            await self._connection.execute("COMMIT")
        except FAULTS as error:
            raise self._lost_or(self._told(error, "commit")) from error

    async def rollback(self) -> None:
        """Undo; a connection that cannot is ended, and the server undoes the rest.

        So is one whose caller gave up waiting: it may never answer again, and would be waited for.
        """
        if _is_given_up():
            self._connection.terminate()
        if self.usable or self.broken:
            return
        try:
            await self._connection.execute("ROLLBACK")
        except BaseException as error:
            self._connection.terminate()
            if not isinstance(error, FAULTS):
                raise

    def _told(self, error: BaseException, doing: str) -> TidemillError:
        """The error to raise instead of asyncpg's; no answer in time ends the connection."""
        if isinstance(error, TimeoutError):
            self._connection.terminate()
        return error_of(error, doing)

    def _lost_or(self, error: TidemillError) -> TidemillError:
        """An error while a commit was in flight: with the connection gone, nobody knows."""
        if self.broken and isinstance(error, StoreUnavailable):
            return AnswerLost(f"The connection broke before a commit was answered: {error}")
        return error

    def abandon(self) -> None:
        """Close the socket of a connection whose loop is closed, which can do it no more."""
        transport: Any = getattr(self._connection, "_transport", None)
        with suppress(RuntimeError):  # what it would have asked of the loop
            self._connection.terminate()
        plain = getattr(transport, "_sock", None)
        if plain is not None:
            plain.close()
            transport._sock = None  # noqa: SLF001 - or its end as garbage would complain

    def end(self) -> None:
        """End the connection at once."""
        self._connection.terminate()


def error_of(error: BaseException, doing: str) -> TidemillError:
    """The error to raise in place of one of asyncpg's, or of the socket below it."""
    if isinstance(error, OverflowError | UnicodeEncodeError | asyncpg.DataError):
        state: str | None = getattr(error, "sqlstate", None) or "22000"
    elif isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate
    else:
        state = None
    return translated(state, str(error) or type(error).__name__, doing)


def _is_given_up() -> bool:
    running = asyncio.current_task()
    return running is not None and running.cancelling() > 0


def _no_clock() -> Any:
    return None
