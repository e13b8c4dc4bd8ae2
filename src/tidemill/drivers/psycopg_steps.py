"""Programs in a transaction of the user's, on a connection of psycopg 3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.rows import DictRow, dict_row
from psycopg.types import array, datetime, none, numeric, string, uuid
from psycopg.types import bool as boolean
from psycopg.types.array import ListBinaryDumper
from psycopg.types.string import TextBinaryLoader

from tidemill.drivers.inside_errors import explaining, of_postgres
from tidemill.drivers.psycopg import UtcLoader, state_of
from tidemill.drivers.run_inside import Act, Say, bind, called
from tidemill.errors import TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Row
from tidemill.store.contract import Clock


class _TextLoader(TextBinaryLoader):
    """Text is text also where the application has no encoding, which psycopg reads as bytes."""

    def load(self, data: Buffer) -> str:
        text = super().load(data)
        return text if isinstance(text, str) else text.decode(errors="replace")


def _plain_adapters() -> AdaptersMap:
    """How psycopg itself writes and reads, whatever the application has registered."""
    adapters = AdaptersMap(psycopg.adapters)
    for kind in (none, boolean, numeric, string, datetime, uuid, array):
        kind.register_default_adapters(adapters)
    adapters.register_loader("timestamptz", UtcLoader)
    adapters.register_loader("text", _TextLoader)
    adapters.register_dumper(list, ListBinaryDumper)
    return adapters


_PLAIN: Final = _plain_adapters()


class _PlainCursor(psycopg.RawCursor[DictRow]):
    """A cursor whose values and rows are ours, on a connection whose settings stay the user's."""

    @property
    def adapters(self) -> AdaptersMap:
        return _PLAIN


class _PlainAsyncCursor(psycopg.AsyncRawCursor[DictRow]):
    """The same, awaited."""

    @property
    def adapters(self) -> AdaptersMap:
        return _PLAIN


class PsycopgSteps:
    """A connection with a transaction open on it, or one that begins by itself."""

    def __init__(
        self, connection: psycopg.Connection[Any], catalogue: Catalogue, clock: Clock | None
    ) -> None:
        self._cursor = _PlainCursor(connection, row_factory=dict_row)
        self._bind = partial(bind, catalogue=catalogue, clock=clock)

    def step(self, act: Act, /) -> Sequence[Row]:
        with explaining(_explain, called(act)):
            sql, values = self._bind(act)
            cursor = self._cursor.execute(sql.encode(), values, prepare=_prepare(act), binary=True)
            return cursor.fetchall() if cursor.description is not None else ()


class PsycopgAsyncSteps:
    """The same, awaited."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], catalogue: Catalogue, clock: Clock | None
    ) -> None:
        self._cursor = _PlainAsyncCursor(connection, row_factory=dict_row)
        self._bind = partial(bind, catalogue=catalogue, clock=clock)

    async def step(self, act: Act, /) -> Sequence[Row]:
        with explaining(_explain, called(act)):
            sql, values = self._bind(act)
            cursor = await self._cursor.execute(
                sql.encode(), values, prepare=_prepare(act), binary=True
            )
            return await cursor.fetchall() if cursor.description is not None else ()


def _prepare(act: Act) -> bool | None:
    """As the user's connection has it; nothing is gained by preparing a savepoint."""
    return False if isinstance(act, Say) else None


def _explain(error: BaseException, doing: str) -> TidemillError | None:
    return of_postgres(state_of(error), str(error), doing)
