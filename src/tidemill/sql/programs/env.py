"""What every program is given, and the steps that many of them take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.worker_rows import lease_is_live
from tidemill.values.bounds import Bounds
from tidemill.values.ids import JobId, WorkerId

T = TypeVar("T")

CLOCK: Final = "clock"
"""The statement that asks the store's clock. Where that is the host's, the driver says the time as
it runs the statement, so once the write lock is granted (clause A1)."""

UNWRITABLE_UNTIL: Final = "unwritable_until"
"""The statement that asks when last the database could not be written, as far as anyone noted it
(clause C10). Where one writer can block all others, the driver adds what its own process knows, or
does not know, of the time since; `lease` is how long a heart may have been blocked."""

CHUNK: Final = 1_000
"""The longest list in one statement."""


@dataclass(frozen=True, slots=True)
class Env:
    """How to read rows, and the bounds to keep."""

    dialect: Dialect
    bounds: Bounds


def read_clock(env: Env) -> Program[datetime]:
    """The store's time."""
    rows = yield Statement(CLOCK)
    return env.dialect.instant(rows[0]["now"])


def read_lease(env: Env, worker: WorkerId) -> Program[tuple[datetime, bool]]:
    """The store's time, and whether a worker's lease is live then, read without a lock."""
    rows = yield Statement("worker_lease", {"worker": worker})
    now = env.dialect.instant(rows[0]["now"])
    return now, lease_is_live(env.dialect, rows[0], now)


def select_each(name: str, ids: Sequence[JobId]) -> Program[list[Row]]:
    """The rows that a statement with a list `ids` finds, for any number of them."""
    found: list[Row] = []
    for chunk in chunks(ids):
        rows = yield Statement(name, {"ids": tuple(chunk)})
        found += rows
    return found


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
