"""Every kind of transaction that a bridge takes, opened as its own documentation says."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

Do = Callable[[], Any]


async def settled(answer: Any) -> Any:
    """What an awaitable answers, or what was answered at once."""
    return await answer if isinstance(answer, Awaitable) else answer


@dataclass
class Open:
    """One open transaction.

    Attributes:
        tx: what the library is given.
        say: runs SQL of the application's and answers its rows.
    """

    tx: Any
    say: Callable[[str], Any]
    end: tuple[Do, Do]
    awaited: bool

    async def execute(self, sql: str) -> list[tuple[Any, ...]]:
        rows = await settled(self.say(sql))
        return [tuple(row.values() if isinstance(row, dict) else row) for row in rows]

    async def commit(self) -> None:
        await settled(self.end[0]())

    async def rollback(self) -> None:
        await settled(self.end[1]())

    async def enqueue(self, handle: Any, *args: Any) -> Any:
        """Enqueue as the application would; a sync one in a thread, so that it may wait."""
        if self.awaited:
            return await handle.enqueue_in(self.tx, *args)
        return await asyncio.to_thread(handle.enqueue_in, self.tx, *args)

    async def enqueue_many(self, mill: Any, jobs: Any) -> Any:
        return await settled(mill.enqueue_many_in(self.tx, jobs))


Opener = Callable[[str], Any]


def sqlalchemy_url(url: str, driver: str) -> str:
    if url.startswith("postgresql:"):
        return url.replace("postgresql:", f"postgresql+{driver}:", 1)
    return f"sqlite+{driver}:///{url}"


@asynccontextmanager
async def of_sqlite3(path: str) -> AsyncGenerator[Open]:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    with closing(connection):
        yield plain_sqlite3(connection)


@asynccontextmanager
async def of_sqlite3_by_itself(path: str) -> AsyncGenerator[Open]:
    connection = sqlite3.connect(path, check_same_thread=False)
    with closing(connection):
        yield plain_sqlite3(connection)


def plain_sqlite3(connection: sqlite3.Connection) -> Open:
    ends = connection.commit, connection.rollback
    return Open(connection, lambda sql: connection.execute(sql).fetchall(), ends, awaited=False)


@asynccontextmanager
async def of_aiosqlite(path: str) -> AsyncGenerator[Open]:
    async with aiosqlite.connect(path) as connection:
        yield Open(
            connection,
            connection.execute_fetchall,
            (connection.commit, connection.rollback),
            awaited=True,
        )


@asynccontextmanager
async def of_psycopg(url: str) -> AsyncGenerator[Open]:
    with psycopg.connect(url) as connection:
        yield plain_psycopg(connection)
        connection.close()


def plain_psycopg(connection: psycopg.Connection[Any]) -> Open:
    def say(sql: str) -> list[Any]:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    return Open(connection, say, (connection.commit, connection.rollback), awaited=False)


@asynccontextmanager
async def of_psycopg_async(url: str) -> AsyncGenerator[Open]:
    connection = await psycopg.AsyncConnection.connect(url)

    async def say(sql: str) -> list[Any]:
        cursor = await connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []

    try:
        yield Open(connection, say, (connection.commit, connection.rollback), awaited=True)
    finally:
        await connection.close()


@asynccontextmanager
async def of_asyncpg(url: str) -> AsyncGenerator[Open]:
    connection = await asyncpg.connect(url)
    try:
        async with in_asyncpg(connection) as transaction:
            yield transaction
    finally:
        await connection.close()


@asynccontextmanager
async def of_asyncpg_pool(url: str) -> AsyncGenerator[Open]:
    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        in_asyncpg(connection) as transaction,
    ):
        yield transaction


@asynccontextmanager
async def in_asyncpg(connection: Any) -> AsyncGenerator[Open]:
    transaction = connection.transaction()
    await transaction.start()
    ended: list[str] = []

    async def commit() -> None:
        ended.append("commit")
        await transaction.commit()

    async def rollback() -> None:
        ended.append("rollback")
        await transaction.rollback()

    try:
        yield Open(connection, connection.fetch, (commit, rollback), awaited=True)
    finally:
        if not ended:
            await transaction.rollback()


def of_sqlalchemy(driver: str, kind: str) -> Opener:
    @asynccontextmanager
    async def opener(url: str) -> AsyncGenerator[Open]:
        arguments = {"check_same_thread": False} if driver == "pysqlite" else {}
        engine = sa.create_engine(sqlalchemy_url(url, driver), connect_args=arguments)
        tx: Any = engine.connect()
        if kind == "session":
            tx.close()
            tx = Session(engine)
        elif kind == "scoped session":
            tx.close()
            tx = scoped_session(sessionmaker(engine), scopefunc=lambda: 1)

        def say(sql: str) -> Any:
            answer = tx.execute(sa.text(sql))
            return answer.all() if answer.returns_rows else []

        try:
            yield Open(tx, say, (tx.commit, tx.rollback), awaited=False)
        finally:
            tx.close()
            engine.dispose()

    return opener


def of_async_sqlalchemy(driver: str, kind: str) -> Opener:
    @asynccontextmanager
    async def opener(url: str) -> AsyncGenerator[Open]:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        tx: Any
        if kind == "connection":
            tx = await engine.connect()
        elif kind == "session":
            tx = AsyncSession(engine)
        else:
            tx = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: 1)

        async def say(sql: str) -> Any:
            answer = await tx.execute(sa.text(sql))
            return answer.all() if answer.returns_rows else []

        try:
            yield Open(tx, say, (tx.commit, tx.rollback), awaited=True)
        finally:
            await tx.close()
            await engine.dispose()

    return opener


ON_SQLITE: dict[str, Opener] = {
    "sqlite3": of_sqlite3,
    "sqlite3 that begins by itself": of_sqlite3_by_itself,
    "aiosqlite": of_aiosqlite,
    "sqlalchemy connection": of_sqlalchemy("pysqlite", "connection"),
    "sqlalchemy session": of_sqlalchemy("pysqlite", "session"),
    "sqlalchemy scoped session": of_sqlalchemy("pysqlite", "scoped session"),
    "sqlalchemy async connection": of_async_sqlalchemy("aiosqlite", "connection"),
    "sqlalchemy async session": of_async_sqlalchemy("aiosqlite", "session"),
    "sqlalchemy async scoped session": of_async_sqlalchemy("aiosqlite", "scoped session"),
}
ON_POSTGRES: dict[str, Opener] = {
    "psycopg": of_psycopg,
    "psycopg async": of_psycopg_async,
    "asyncpg": of_asyncpg,
    "asyncpg of a pool": of_asyncpg_pool,
    "sqlalchemy connection, psycopg": of_sqlalchemy("psycopg", "connection"),
    "sqlalchemy session, psycopg": of_sqlalchemy("psycopg", "session"),
    "sqlalchemy scoped session, psycopg": of_sqlalchemy("psycopg", "scoped session"),
    "sqlalchemy async connection, psycopg": of_async_sqlalchemy("psycopg", "connection"),
    "sqlalchemy async connection, asyncpg": of_async_sqlalchemy("asyncpg", "connection"),
    "sqlalchemy async session, asyncpg": of_async_sqlalchemy("asyncpg", "session"),
    "sqlalchemy async scoped session, asyncpg": of_async_sqlalchemy("asyncpg", "scoped session"),
}
