"""Programs in a transaction of the user's, through SQLAlchemy: never on its raw connection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import StatementError

from tidemill.drivers.inside_errors import explaining, of_postgres, of_sqlite
from tidemill.drivers.run_inside import Act, Say, bind, called
from tidemill.drivers.sqlite_steps import plain_text, require_open
from tidemill.errors import TidemillError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row
from tidemill.store.contract import Clock

_NUMBERED: Final = re.compile(r"\$(\d+)")
_OPTIONS: Final[dict[str, Any]] = {"stream_results": False}


class SqlalchemySteps:
    """A connection of SQLAlchemy with a transaction open on it."""

    def __init__(self, connection: Connection, catalogue: Catalogue, clock: Clock | None) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._clock = clock
        self._arrays = catalogue.dialect.arrays
        self._numbered = connection.dialect.paramstyle == "numeric_dollar"

    def step(self, act: Act, /) -> Sequence[Row]:
        explain = _of_postgres if self._arrays else _of_sqlite
        text = nullcontext() if self._arrays else plain_text(self._raw())
        with explaining(explain, called(act)), text:
            if isinstance(act, Batch) and not self._arrays:
                sql, runs = self._catalogue.bind_each(act.name, act.rows)
                return ({"count": self._execute(sql, runs).rowcount},)
            if isinstance(act, Say) and not self._arrays:
                require_open(self._raw(), act)
            sql, values = bind(act, self._catalogue, self._clock)
            cursor = self._execute(*self._spelled(sql, values))
            if isinstance(act, Say) or not cursor.returns_rows:
                cursor.close()
                return ()
            rows: Sequence[Row] = cursor.mappings().all()
            return rows

    def _execute(self, sql: str, values: Any) -> Any:
        return self._connection.exec_driver_sql(sql, values or None, execution_options=_OPTIONS)

    def _spelled(self, sql: str, values: tuple[object, ...]) -> tuple[str, tuple[object, ...]]:
        """With the placeholders of the driver below, where those are `%s`."""
        if self._numbered or not self._arrays or not values:
            return sql, values
        order = [int(number) - 1 for number in _NUMBERED.findall(sql)]
        text = _NUMBERED.sub("%s", sql.replace("%", "%%"))
        return text, tuple(values[each] for each in order)

    def _raw(self) -> Any:
        return self._connection.connection.driver_connection


def _of_postgres(error: BaseException, doing: str) -> TidemillError | None:
    below = error.orig if isinstance(error, StatementError) else error
    if isinstance(below, OverflowError | UnicodeEncodeError):
        return of_postgres("22000", str(below), doing)
    state = getattr(below, "sqlstate", None) or getattr(below, "pgcode", None)
    return of_postgres(state, str(below), doing)


def _of_sqlite(error: BaseException, doing: str) -> TidemillError | None:
    below = error.orig if isinstance(error, StatementError) else error
    return None if below is None else of_sqlite(below, doing)
