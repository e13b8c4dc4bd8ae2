"""Programs in a transaction of the user's, on a connection of asyncpg or a pool's proxy of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from tidemill.drivers.asyncpg import state_of
from tidemill.drivers.inside_errors import explaining, of_postgres
from tidemill.drivers.run_inside import Act, Say, bind, called
from tidemill.errors import TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Row
from tidemill.store.contract import Clock

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    AsyncpgConnection: TypeAlias = (
        asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    )


class AsyncpgSteps:
    """A connection with a transaction open on it."""

    def __init__(
        self, connection: AsyncpgConnection, catalogue: Catalogue, clock: Clock | None
    ) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._clock = clock

    async def step(self, act: Act, /) -> Sequence[Row]:
        with explaining(_explain, called(act)):
            sql, values = bind(act, self._catalogue, self._clock)
            if isinstance(act, Say):
                await self._connection.execute(sql)
                return ()
            rows: Sequence[Row] = await self._connection.fetch(
                sql, *values, record_class=asyncpg.Record
            )
            return rows


def _explain(error: BaseException, doing: str) -> TidemillError | None:
    return of_postgres(state_of(error), str(error), doing)
