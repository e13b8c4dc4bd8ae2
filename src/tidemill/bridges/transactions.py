"""How a type checker tells sync transactions from async ones; `kinds` tells them at run time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol


class SyncTx(Protocol):
    """A transaction whose `commit` blocks.

    Connections of sqlite3 and psycopg, connections and sessions of SQLAlchemy.
    """

    def commit(self) -> None:
        """Commit; only ever called by you."""
        ...


class AsyncTx(Protocol):
    """A transaction whose `execute` is awaited.

    Connections of psycopg, asyncpg and aiosqlite, connections and sessions of SQLAlchemy.
    """

    @property
    def execute(self) -> Callable[..., Awaitable[Any]]:
        """Run a statement."""
        ...


class AsyncProxy(Protocol):
    """What stands for a connection that a pool of asyncpg has handed out."""

    def __getattr__(self, name: str, /) -> Any:
        """What the connection has under that name."""
        ...
