"""A user's transactions: which are sync and which are awaited, on every kind of connection."""

from __future__ import annotations

import sqlite3
from typing import Any, assert_type

import aiosqlite
import asyncpg
import psycopg
from asyncpg.pool import PoolConnectionProxy
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from tidemill import JobRef, Tidemill

mill = Tidemill()


@mill.job("payments.refund")
async def refund(payment_id: str, *, amount: int = 1) -> int:
    """A job."""
    return amount


def in_sqlite3(tx: sqlite3.Connection) -> None:
    """The standard library's connection blocks."""
    assert_type(refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(refund.enqueue_in(tx, payment_id="p-1", amount=2), JobRef[int])
    assert_type(refund.with_options(delay="1h").enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


async def in_aiosqlite(tx: aiosqlite.Connection) -> None:
    """Its awaited sister."""
    assert_type(await refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(await mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


def in_psycopg(tx: psycopg.Connection) -> None:
    """Psycopg, sync; rows of any kind."""
    assert_type(refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


def in_psycopg_with_dicts(tx: psycopg.Connection[dict[str, Any]]) -> None:
    """The same with another row factory."""
    assert_type(refund.enqueue_in(tx, "p-1", amount=2), JobRef[int])


async def in_async_psycopg(tx: psycopg.AsyncConnection) -> None:
    """Psycopg, awaited."""
    assert_type(await refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(await mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


async def in_asyncpg(tx: asyncpg.Connection[asyncpg.Record]) -> None:
    """Asyncpg's connection."""
    assert_type(await refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(await mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


async def in_asyncpg_of_a_pool(tx: PoolConnectionProxy[asyncpg.Record]) -> None:
    """What asyncpg's pool hands out."""
    assert_type(await refund.enqueue_in(tx, "p-1"), JobRef[int])
    assert_type(await mill.enqueue_many_in(tx, [refund.bind("p-1")]), list[JobRef[int]])


async def in_an_acquired_connection(pool: asyncpg.Pool[asyncpg.Record]) -> None:
    """As it is written."""
    async with pool.acquire() as connection, connection.transaction():
        assert_type(await refund.enqueue_in(connection, "p-1"), JobRef[int])


def in_sqlalchemy(
    connection: Connection, session: Session, scoped: scoped_session[Session]
) -> None:
    """SQLAlchemy, sync."""
    assert_type(refund.enqueue_in(connection, "p-1"), JobRef[int])
    assert_type(refund.enqueue_in(session, "p-1"), JobRef[int])
    assert_type(refund.enqueue_in(scoped, "p-1"), JobRef[int])
    assert_type(mill.enqueue_many_in(session, [refund.bind("p-1")]), list[JobRef[int]])


async def in_async_sqlalchemy(
    connection: AsyncConnection, session: AsyncSession, scoped: async_scoped_session[AsyncSession]
) -> None:
    """SQLAlchemy, awaited."""
    assert_type(await refund.enqueue_in(connection, "p-1"), JobRef[int])
    assert_type(await refund.enqueue_in(session, "p-1"), JobRef[int])
    assert_type(await refund.enqueue_in(scoped, "p-1"), JobRef[int])
    assert_type(await mill.enqueue_many_in(session, [refund.bind("p-1")]), list[JobRef[int]])
