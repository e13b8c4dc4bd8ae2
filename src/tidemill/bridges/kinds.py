"""Which kind of transaction an object is, told by its classes' names.

The libraries themselves are not imported for that: an application that uses one has loaded it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidemill.errors import TransactionRefused


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of transaction: which module beside this one knows it, and whether it is awaited."""

    module: str
    awaited: bool


KINDS: Final[Mapping[str, Kind]] = {
    "sqlite3.Connection": Kind("sqlite", awaited=False),
    "aiosqlite.core.Connection": Kind("sqlite", awaited=True),
    "psycopg.Connection": Kind("psycopg", awaited=False),
    "psycopg.AsyncConnection": Kind("psycopg", awaited=True),
    "asyncpg.connection.Connection": Kind("asyncpg", awaited=True),
    "asyncpg.pool.PoolConnectionProxy": Kind("asyncpg", awaited=True),
    "sqlalchemy.engine.base.Connection": Kind("sqlalchemy", awaited=False),
    "sqlalchemy.orm.session.Session": Kind("sqlalchemy", awaited=False),
    "sqlalchemy.orm.scoping.scoped_session": Kind("sqlalchemy", awaited=False),
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": Kind("sqlalchemy", awaited=True),
    "sqlalchemy.ext.asyncio.session.AsyncSession": Kind("sqlalchemy", awaited=True),
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": Kind("sqlalchemy", awaited=True),
}

TAKEN: Final = (
    "connections of sqlite3, aiosqlite, psycopg and asyncpg, and connections and sessions of "
    "SQLAlchemy, sync and async"
)

_FROM_CURSOR: Final = "Give its connection: cursor.connection."
_FROM_TRANSACTION: Final = "Give the connection that it is open on."
_FROM_POOL: Final = "Give a connection of it, inside a transaction."
_FROM_ENGINE: Final = "Give a connection of it: `with engine.begin() as connection`."
_FROM_MAKER: Final = "Give a session of it: `with Session.begin() as session`."
_NEARLY: Final[Mapping[str, str]] = {
    "sqlite3.Cursor": _FROM_CURSOR,
    "aiosqlite.cursor.Cursor": "Give the connection that it was made by.",
    "psycopg.Cursor": _FROM_CURSOR,
    "psycopg.AsyncCursor": _FROM_CURSOR,
    "psycopg.Transaction": "Give its connection: transaction.connection.",
    "psycopg.AsyncTransaction": "Give its connection: transaction.connection.",
    "psycopg_pool.pool.ConnectionPool": _FROM_POOL,
    "psycopg_pool.pool_async.AsyncConnectionPool": _FROM_POOL,
    "asyncpg.pool.Pool": _FROM_POOL,
    "asyncpg.transaction.Transaction": _FROM_TRANSACTION,
    "sqlalchemy.engine.base.Engine": _FROM_ENGINE,
    "sqlalchemy.engine.base.Transaction": "Give its connection: transaction.connection.",
    "sqlalchemy.orm.session.SessionTransaction": "Give its session: transaction.session.",
    "sqlalchemy.orm.session.sessionmaker": _FROM_MAKER,
    "sqlalchemy.ext.asyncio.engine.AsyncEngine": f"{_FROM_ENGINE[:-1]}, async.",
    "sqlalchemy.ext.asyncio.engine.AsyncTransaction": (
        "Give its connection: transaction.connection."
    ),
    "sqlalchemy.ext.asyncio.session.async_sessionmaker": f"{_FROM_MAKER[:-1]}, async.",
    "sqlalchemy.ext.asyncio.session.AsyncSessionTransaction": (
        "Give its session: transaction.session."
    ),
}


def kind_of(tx: object) -> Kind:
    """The kind of a transaction.

    Raises:
        TransactionRefused: it is none that is known; the message lists those that are.
    """
    names = [f"{each.__module__}.{each.__qualname__}" for each in type(tx).__mro__]
    for name in names:
        if name in KINDS:
            return KINDS[name]
    instead = next((f"{_NEARLY[name]} " for name in names if name in _NEARLY), "")
    message = (
        f"{names[0]} is no transaction that a job can be written in; nothing was written. "
        f"{instead}What can be given: {TAKEN}."
    )
    raise TransactionRefused(message)
