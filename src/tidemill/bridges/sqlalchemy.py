"""Transactions of SQLAlchemy: on its connections and sessions, and through them alone."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError, UnboundExecutionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from tidemill.bridges.refusals import (
    refuse_autocommit,
    refuse_closed,
    require_database,
    require_sqlite_transaction,
)
from tidemill.drivers.footing import Footing
from tidemill.drivers.run_inside import Course, run_inside
from tidemill.drivers.sqlalchemy_steps import SqlalchemySteps
from tidemill.errors import TransactionRefused

T = TypeVar("T")

SyncTransaction = Connection | Session | scoped_session[Any]
AsyncTransaction = AsyncConnection | AsyncSession | async_scoped_session[Any]

_DATABASES: Final = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
_INSTEAD: Final = "Give the engine or the connection an isolation level other than AUTOCOMMIT."


def run(tx: SyncTransaction, footing: Footing, course: Course[T]) -> T:
    """Run a course in the transaction of a connection or a session, which begins by itself.

    Raises:
        TransactionRefused: it is closed, commits at once, or is on another kind of database.
    """
    connection = _connection_of(tx)
    if connection.closed:
        raise refuse_closed(tx)
    dialect = connection.dialect.name
    require_database(footing, _DATABASES.get(dialect, dialect), tx)
    if not connection.in_transaction():
        connection.begin()  # as any statement would; it is SQLAlchemy's, and so is its end
    _require_transaction(connection, footing, tx)
    steps = SqlalchemySteps(connection, footing.catalogue, footing.clock)
    return run_inside(course, steps)


async def run_async(tx: AsyncTransaction, footing: Footing, course: Course[T]) -> T:
    """The same, awaited."""
    if isinstance(tx, async_scoped_session):
        session: AsyncSession = tx()
        return await session.run_sync(run, footing, course)
    if isinstance(tx, AsyncSession):
        return await tx.run_sync(run, footing, course)
    try:
        return await tx.run_sync(run, footing, course)
    except InvalidRequestError as error:
        if tx.sync_connection is None:
            raise refuse_closed(tx) from error
        raise


def _connection_of(tx: SyncTransaction) -> Connection:
    if isinstance(tx, Connection):
        return tx
    session: Session = tx() if isinstance(tx, scoped_session) else tx
    try:
        return session.connection()
    except UnboundExecutionError as error:
        message = (
            "This session is bound to no database, or to several, so it does not say where the "
            "job belongs; nothing was written. Give its connection to the store's database: "
            'session.connection(bind_arguments={"mapper": …}).'
        )
        raise TransactionRefused(message) from error


def _require_transaction(connection: Connection, footing: Footing, tx: object) -> None:
    pooled = connection.connection
    if footing.database == "SQLite":
        require_sqlite_transaction(pooled.driver_connection, tx, _INSTEAD)
    elif getattr(pooled.dbapi_connection, "autocommit", False):
        raise refuse_autocommit(tx, _INSTEAD)
