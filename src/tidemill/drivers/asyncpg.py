"""Programs on a connection of asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import asyncpg

from tidemill.drivers.postgres_errors import translated
from tidemill.drivers.postgres_instants import instant_of_tuple, tuple_of
from tidemill.drivers.postgres_session import PostgresSession, answer_may_be_lost
from tidemill.errors import StoreUnavailable, TidemillError
from tidemill.sql.program import Batch, Row, Statement

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
FAULTS = (
    asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError,
)  # fmt: skip
_BAD_VALUES = (asyncpg.DataError, UnicodeEncodeError)


class AsyncpgExecutor(PostgresSession[Connection]):
    """One connection of our own."""

    _reads_all_instants = False

    @property
    def usable(self) -> bool:
        """Whether the connection is there, with no transaction open on it."""
        return not self.broken and not self._connection.is_in_transaction()

    @property
    def broken(self) -> bool:
        """Whether the connection is gone."""
        return self._connection.is_closed()

    async def begin(self, *, write: bool) -> None:
        await self._say(self._beginnings[write], "begin")

    async def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        try:
            sql, values = self._bind(step)
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
        with answer_may_be_lost(self):
            await self._say("COMMIT", "commit")

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

    async def _say(self, sql: str, doing: str) -> None:
        try:
            await self._connection.execute(sql)
        except FAULTS as error:
            raise self._told(error, doing) from error

    def _told(self, error: BaseException, doing: str) -> TidemillError:
        """The error to raise instead of asyncpg's; no answer in time ends the connection."""
        if isinstance(error, TimeoutError):
            self._connection.terminate()
        return error_of(error, doing)

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
    return translated(state_of(error), str(error) or type(error).__name__, doing)


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of an error; None where the database has not answered with one."""
    if isinstance(error, OverflowError | UnicodeEncodeError | asyncpg.DataError):
        return getattr(error, "sqlstate", None) or "22000"
    return error.sqlstate if isinstance(error, asyncpg.PostgresError) else None


def _is_given_up() -> bool:
    running = asyncio.current_task()
    return running is not None and running.cancelling() > 0
