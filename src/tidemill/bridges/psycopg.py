"""Transactions on connections of psycopg 3."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from tidemill.bridges.refusals import named, refuse_autocommit, refuse_closed, require_database
from tidemill.drivers.footing import Footing
from tidemill.drivers.psycopg_steps import PsycopgAsyncSteps, PsycopgSteps
from tidemill.drivers.run_inside import Course, run_inside, run_inside_async
from tidemill.errors import TransactionRefused

T = TypeVar("T")


def run(tx: psycopg.Connection[Any], footing: Footing, course: Course[T]) -> T:
    """Run a course in the transaction that is open on a connection, or that it begins by itself.

    Raises:
        TransactionRefused: it is closed, or would commit at once.
    """
    _require(tx, footing, "with connection.transaction()")
    return run_inside(course, PsycopgSteps(tx, footing.catalogue, footing.clock))


async def run_async(tx: psycopg.AsyncConnection[Any], footing: Footing, course: Course[T]) -> T:
    """The same, awaited."""
    _require(tx, footing, "async with connection.transaction()")
    steps = PsycopgAsyncSteps(tx, footing.catalogue, footing.clock)
    return await run_inside_async(course, steps)


def _require(
    tx: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], footing: Footing, block: str
) -> None:
    require_database(footing, "PostgreSQL", tx)
    if tx.closed:
        raise refuse_closed(tx)
    if tx.info.pipeline_status is not PipelineStatus.OFF:
        message = (
            f"{named(tx)} is in pipeline mode, where answers come only later; nothing was "
            "written. Call this outside the `pipeline()` block."
        )
        raise TransactionRefused(message)
    if tx.autocommit and tx.info.transaction_status is TransactionStatus.IDLE:
        raise refuse_autocommit(tx, f"Call this inside `{block}`.")
