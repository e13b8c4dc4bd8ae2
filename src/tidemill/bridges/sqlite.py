"""Transactions on connections of `sqlite3` and of aiosqlite."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidemill.bridges.refusals import (
    refuse_closed,
    require_database,
    require_sqlite_transaction,
)
from tidemill.drivers.footing import Footing
from tidemill.drivers.run_inside import Course, run_inside, run_inside_async
from tidemill.drivers.sqlite_steps import AiosqliteSteps, SqliteSteps

if TYPE_CHECKING:
    import aiosqlite

T = TypeVar("T")

_INSTEAD: Final = 'Begin one before: {}connection.execute("BEGIN IMMEDIATE").'


def run(tx: sqlite3.Connection, footing: Footing, course: Course[T]) -> T:
    """Run a course in the transaction that is open on a connection, or that it begins by itself.

    Raises:
        TransactionRefused: it is closed, or would commit at once.
    """
    require_database(footing, "SQLite", tx)
    if _is_closed(tx):
        raise refuse_closed(tx)
    require_sqlite_transaction(tx, tx, _INSTEAD.format(""))
    assert footing.clock is not None
    return run_inside(course, SqliteSteps(tx, footing.catalogue, footing.clock))


async def run_async(tx: aiosqlite.Connection, footing: Footing, course: Course[T]) -> T:
    """The same, awaited."""
    require_database(footing, "SQLite", tx)
    if _is_closed(tx):
        raise refuse_closed(tx)
    require_sqlite_transaction(tx, tx, _INSTEAD.format("await "))
    assert footing.clock is not None
    async with await tx.cursor() as cursor:
        steps = AiosqliteSteps(tx, cursor, footing.catalogue, footing.clock)
        return await run_inside_async(course, steps)


def _is_closed(tx: Any) -> bool:
    try:
        return tx.in_transaction is None
    except (sqlite3.ProgrammingError, ValueError):  # ValueError is aiosqlite's
        return True
