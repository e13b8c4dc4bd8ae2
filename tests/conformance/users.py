"""Users of the stores: who write to a table of their own in the store's database."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

ORDERS = "CREATE TABLE IF NOT EXISTS orders (name text NOT NULL); DELETE FROM orders"


@dataclass
class Open:
    """A user's transaction."""

    tx: Any
    statements: list[str]
    insert: str

    def write(self, row: str) -> None:
        self.tx.execute(self.insert, (row,))

    def commit(self) -> None:
        self.tx.commit()

    def rollback(self) -> None:
        self.tx.rollback()


class OnSqlite:
    """With connections of sqlite3 that begin a transaction by themselves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(ORDERS)

    @contextmanager
    def begin(self) -> Generator[Open]:
        statements: list[str] = []
        with closing(sqlite3.connect(self._path)) as connection:
            connection.set_trace_callback(statements.append)
            yield Open(connection, statements, "INSERT INTO orders VALUES (?)")

    @contextmanager
    def without(self) -> Generator[object]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            yield connection

    def rows(self) -> list[str]:
        with closing(sqlite3.connect(self._path)) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM orders")]


@contextmanager
def recorded(connection: psycopg.Connection[Any]) -> Generator[list[str]]:
    """Every statement that is run on one connection, whoever's cursor runs it."""
    statements: list[str] = []
    execute = psycopg.Cursor.execute

    def recording(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **options: Any) -> Any:
        if cursor.connection is connection:
            statements.append(query.decode() if isinstance(query, bytes) else str(query))
        return execute(cursor, query, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", recording)
        yield statements


class OnPostgres:
    """With connections of psycopg."""

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(ORDERS, prepare=False)

    @contextmanager
    def begin(self) -> Generator[Open]:
        with (
            closing(psycopg.connect(self._url)) as connection,
            recorded(connection) as statements,
        ):
            yield Open(connection, statements, "INSERT INTO orders VALUES (%s)")

    @contextmanager
    def without(self) -> Generator[object]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            yield connection

    def rows(self) -> list[str]:
        with psycopg.connect(self._url) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM orders")]
