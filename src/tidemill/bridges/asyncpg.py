"""Transactions on connections of asyncpg, and on the proxies that its pool hands out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import asyncpg

from tidemill.bridges.refusals import refuse_autocommit, refuse_closed, require_database
from tidemill.drivers.asyncpg_steps import AsyncpgSteps
from tidemill.drivers.footing import Footing
from tidemill.drivers.run_inside import Course, run_inside_async

if TYPE_CHECKING:
    from tidemill.drivers.asyncpg_steps import AsyncpgConnection

T = TypeVar("T")


async def run_async(tx: AsyncpgConnection, footing: Footing, course: Course[T]) -> T:
    """Run a course in the transaction that is open on a connection.

    Raises:
        TransactionRefused: it is closed, given back to its pool, or in no transaction.
    """
    require_database(footing, "PostgreSQL", tx)
    if _is_closed(tx):
        raise refuse_closed(tx)
    if not tx.is_in_transaction():
        raise refuse_autocommit(tx, "Call this inside `async with connection.transaction()`.")
    steps = AsyncpgSteps(tx, footing.catalogue, footing.clock)
    return await run_inside_async(course, steps)


def _is_closed(tx: AsyncpgConnection) -> bool:
    try:
        return bool(tx.is_closed())
    except asyncpg.InterfaceError:  # so says a proxy whose connection is back in the pool
        return True
