"""Transactions that cannot carry a job: each is refused with what to do, and nothing is written."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial

import aiosqlite
import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, sessionmaker
from tests.bridges.conftest import Shop, Where
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE, sqlalchemy_url

from tidemill import TidemillError
from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import Refused, SchemaError, TransactionRefused

COMMITS_AT_ONCE = "commits each statement by itself"


def refused(shop: Shop, tx: object, message: str) -> None:
    with pytest.raises(TransactionRefused, match=message) as error:
        shop.capture.enqueue_in(tx, "p-1")
    assert "nqueue" not in str(error.value), "`complete_in` is refused in the same words"
    assert shop.ids() == []


async def refused_awaited(shop: Shop, tx: object, message: str) -> None:
    with pytest.raises(TransactionRefused, match=message) as error:
        await shop.capture.enqueue_in(tx, "p-1")
    assert "nqueue" not in str(error.value), "`complete_in` is refused in the same words"
    assert shop.ids() == []


def test_a_refusal_is_one_of_tidemills_errors() -> None:
    assert issubclass(TransactionRefused, Refused)
    assert issubclass(TransactionRefused, TidemillError)


def test_a_sqlite3_connection_in_autocommit(on_sqlite: Shop) -> None:
    with closing(sqlite3.connect(on_sqlite.place, isolation_level=None)) as connection:
        refused(on_sqlite, connection, COMMITS_AT_ONCE)
        refused(on_sqlite, connection, r'connection\.execute\("BEGIN IMMEDIATE"\)')


async def test_an_aiosqlite_connection_in_autocommit(on_sqlite: Shop) -> None:
    async with aiosqlite.connect(on_sqlite.place, isolation_level=None) as connection:
        await refused_awaited(on_sqlite, connection, r"await connection\.execute\(.BEGIN IMM")


@pytest.mark.parametrize(
    "kind", ["aiosqlite", "sqlalchemy connection", "sqlalchemy async connection"]
)
async def test_a_connection_to_a_file_in_autocommit_that_does_not_say_so(
    on_sqlite: Shop, monkeypatch, kind: str
) -> None:
    """As one of aiosqlite with autocommit=True, from Python 3.12 on."""
    for bridge in ("sqlite", "sqlalchemy"):
        name = f"tidemill.bridges.{bridge}.require_sqlite_transaction"
        monkeypatch.setattr(name, lambda *_connection: None)
    connect = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect)
    async with ON_SQLITE[kind](on_sqlite.place) as transaction:
        with pytest.raises(TransactionRefused, match="commits each statement by itself"):
            await transaction.enqueue(on_sqlite.capture, "p-1")
        await transaction.rollback()
    assert on_sqlite.ids() == []


def test_a_psycopg_connection_in_autocommit_outside_a_block(on_postgres: Shop) -> None:
    with psycopg.connect(on_postgres.place, autocommit=True) as connection:
        refused(on_postgres, connection, r"with connection\.transaction\(\)")
        with connection.transaction():
            ref = on_postgres.capture.enqueue_in(connection, "p-1")
    assert on_postgres.ids() == [ref.id]


async def test_an_async_psycopg_connection_in_autocommit_outside_a_block(on_postgres: Shop) -> None:
    url = on_postgres.place
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await refused_awaited(on_postgres, connection, r"async with connection\.transaction\(\)")


def test_a_psycopg_connection_in_pipeline_mode(on_postgres: Shop) -> None:
    with psycopg.connect(on_postgres.place) as connection:
        with connection.pipeline():
            refused(on_postgres, connection, r"outside the `pipeline\(\)` block")
        ref = on_postgres.capture.enqueue_in(connection, "p-1")
    assert on_postgres.ids() == [ref.id]


async def test_an_asyncpg_connection_outside_a_transaction(on_postgres: Shop) -> None:
    connection = await asyncpg.connect(on_postgres.place)
    await refused_awaited(on_postgres, connection, COMMITS_AT_ONCE)
    await connection.close()


@pytest.mark.parametrize("where_it_is_set", ["the engine", "the connection"])
@pytest.mark.parametrize("database", ["on_sqlite", "on_postgres"])
def test_an_sqlalchemy_connection_in_autocommit(request, database, where_it_is_set) -> None:
    shop = request.getfixturevalue(database)
    url = sqlalchemy_url(shop.place, "pysqlite" if database == "on_sqlite" else "psycopg")
    level = {"isolation_level": "AUTOCOMMIT"}
    engine = sa.create_engine(url, **(level if where_it_is_set == "the engine" else {}))
    with engine.connect() as connection:
        if where_it_is_set == "the connection":
            connection.execution_options(**level)
        refused(shop, connection, COMMITS_AT_ONCE)
    engine.dispose()


@pytest.mark.parametrize("database", ["on_sqlite", "on_postgres"])
async def test_an_async_sqlalchemy_session_in_autocommit(request, database) -> None:
    shop = request.getfixturevalue(database)
    url = sqlalchemy_url(shop.place, "aiosqlite" if database == "on_sqlite" else "asyncpg")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with AsyncSession(engine) as session:
        await refused_awaited(shop, session, COMMITS_AT_ONCE)
    await engine.dispose()


async def test_a_connection_that_is_closed(where: Where) -> None:
    async with where.transaction() as transaction:
        await transaction.rollback()
    if "session" in type(transaction.tx).__qualname__.lower():
        return  # a session that was closed begins anew when it is used
    with pytest.raises(TransactionRefused, match="is closed"):
        await transaction.enqueue(where.shop.capture, "p-1")


async def test_an_async_connection_that_was_never_opened(on_postgres: Shop) -> None:
    engine = create_async_engine(sqlalchemy_url(on_postgres.place, "asyncpg"))
    await refused_awaited(on_postgres, engine.connect(), "is closed")
    await engine.dispose()


@pytest.mark.parametrize("kind", ON_SQLITE)
async def test_a_transaction_on_sqlite_for_a_store_on_a_server(on_sqlite, on_postgres, kind):
    async with ON_SQLITE[kind](on_sqlite.place) as transaction:
        with pytest.raises(TransactionRefused, match="on SQLite, and the store is on PostgreSQL"):
            await transaction.enqueue(on_postgres.capture, "p-1")


@pytest.mark.parametrize("kind", ON_POSTGRES)
async def test_a_transaction_on_a_server_for_a_store_in_a_file(on_sqlite, on_postgres, kind):
    async with ON_POSTGRES[kind](on_postgres.place) as transaction:
        with pytest.raises(TransactionRefused, match="on PostgreSQL, and the store is on SQLite"):
            await transaction.enqueue(on_sqlite.capture, "p-1")


@pytest.mark.parametrize("other", ["other.db", ":memory:"])
def test_a_transaction_in_another_file_than_the_stores(on_sqlite: Shop, tmp_path, other) -> None:
    place = other if other == ":memory:" else os.fspath(tmp_path / other)
    with closing(sqlite3.connect(place)) as connection:
        refused(on_sqlite, connection, r"and the store is in .*shop\.db")
        assert not connection.in_transaction


def test_the_stores_file_by_another_path(on_sqlite: Shop, tmp_path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(on_sqlite.place)
    with closing(sqlite3.connect(link)) as connection:
        ref = on_sqlite.capture.enqueue_in(connection, "p-1")
        connection.commit()
    assert on_sqlite.ids() == [ref.id]


def test_a_file_without_tables(tmp_path) -> None:
    path = os.fspath(tmp_path / "bare.db")
    sqlite3.connect(path).close()
    store = SqliteStore(path, auto_migrate=False)
    shop = Shop(store, path, lambda _sql: [])
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(SchemaError, match="tidemill migrate"),
    ):
        shop.capture.enqueue_in(connection, "p-1")
    store.close()


@pytest.mark.parametrize("kind", ON_POSTGRES)
async def test_a_schema_without_tables(postgres_url: str, kind: str) -> None:
    store = PostgresStore(postgres_url, schema="elsewhere")
    shop = Shop(store, postgres_url, lambda _sql: [])
    async with ON_POSTGRES[kind](postgres_url) as transaction:
        with pytest.raises(SchemaError, match=r'"elsewhere\.jobs".*`tidemill migrate --app MODULE'):
            await transaction.enqueue(shop.capture, "p-1")
        await transaction.rollback()
    store.close()


async def test_a_transaction_that_may_only_read(on_server: Where) -> None:
    async with on_server.transaction() as transaction:
        await transaction.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(TransactionRefused, match="may only read"):
            await transaction.enqueue(on_server.shop.capture, "p-1")
        await transaction.rollback()


def test_a_connection_to_a_file_that_may_only_read(on_sqlite: Shop) -> None:
    address = f"file:{on_sqlite.place}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        refused(on_sqlite, connection, "may only read")


async def test_a_transaction_that_has_failed_before(on_server: Where) -> None:
    async with on_server.transaction() as transaction:
        with pytest.raises(Exception, match="nowhere"):
            await transaction.execute("SELECT * FROM nowhere")
        for handle in (on_server.shop.capture, on_server.shop.keyed("k")):
            with pytest.raises(TransactionRefused, match="has failed already"):
                await transaction.enqueue(handle, "p-1")
        await transaction.rollback()
    assert on_server.shop.ids() == []


def nearly(place: str) -> list[object]:
    connection = sqlite3.connect(place)
    engine = sa.create_engine(f"sqlite:///{place}")
    return [
        (connection.cursor(), r"cursor\.connection"),
        (engine, r"engine\.begin\(\)"),
        (engine.connect().begin(), r"transaction\.connection"),
        (sessionmaker(engine), r"Session\.begin\(\)"),
        (create_async_engine(f"sqlite+aiosqlite:///{place}"), r"engine\.begin\(\)"),
        (async_sessionmaker(), r"Session\.begin\(\)"),
        (None, "NoneType is no transaction"),
        ("tx", "str is no transaction"),
    ]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_is_nearly_a_transaction_is_refused_with_what_to_give(on_sqlite: Shop) -> None:
    for given, instead in nearly(on_sqlite.place):
        refused(on_sqlite, given, instead)
        refused(on_sqlite, given, "What can be given: connections of sqlite3, aiosqlite, psycopg")


def test_a_cursor_of_psycopg_is_refused_with_its_connection_named(on_postgres: Shop) -> None:
    with psycopg.connect(on_postgres.place) as connection:
        refused(on_postgres, connection.cursor(), r"Give its connection: cursor\.connection")


def test_a_session_that_does_not_say_where_it_writes(on_sqlite: Shop) -> None:
    with Session() as session:
        refused(on_sqlite, session, "does not say where the job belongs")


def test_a_store_that_takes_part_in_no_transaction_says_so(on_sqlite: Shop) -> None:
    class Elsewhere:
        capabilities = replace(on_sqlite.store.capabilities, name="Elsewhere", bridges=False)

    shop = Shop(Elsewhere(), on_sqlite.place, on_sqlite.look)
    with (
        closing(sqlite3.connect(on_sqlite.place)) as connection,
        pytest.raises(TransactionRefused, match="on Elsewhere cannot take part"),
    ):
        shop.capture.enqueue_in(connection, "p-1")


def test_a_connection_of_the_users_own_class_is_taken(on_sqlite: Shop) -> None:
    class Mine(sqlite3.Connection):
        pass

    with closing(sqlite3.connect(on_sqlite.place, factory=Mine)) as connection:
        ref = on_sqlite.capture.enqueue_in(connection, "p-1")
        connection.commit()
    assert on_sqlite.ids() == [ref.id]


def test_a_library_that_the_application_does_not_use_is_not_loaded(tmp_path) -> None:
    program = f"""
import sqlite3, sys
from tidemill import Tidemill
mill = Tidemill("sqlite:///{tmp_path}/shop.db")
@mill.job("capture")
def capture() -> None: ...
mill.store.migrate()
connection = sqlite3.connect("{tmp_path}/shop.db")
capture.enqueue_in(connection)
connection.commit()
print(*{{"aiosqlite", "asyncpg", "django", "psycopg", "sqlalchemy"}} & set(sys.modules))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []
