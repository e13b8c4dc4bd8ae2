"""What only a server has: notifications, poolers, and callers that give up."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine, pool
from tests.bridges.conftest import PATIENT, Shop
from tests.bridges.kinds import ON_POSTGRES, Open, in_asyncpg, plain_psycopg, sqlalchemy_url
from tests.waiting import until

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.postgres_notify import RIDERS, Notifier

pytestmark = pytest.mark.anyio

BLOCKED = (
    "SELECT 1 FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'"
)


@pytest.fixture
def telling(on_postgres: Shop) -> Iterator[Shop]:
    """The shop on a store that notifies."""
    store = PostgresStore(on_postgres.place, lock_timeout=PATIENT)
    yield Shop(store, on_postgres.place, on_postgres.look)
    store.close()


@pytest.mark.parametrize("kind", ON_POSTGRES)
async def test_a_transaction_notifies_once_and_at_its_commit(telling: Shop, kind: str) -> None:
    with psycopg.connect(telling.place, autocommit=True) as listener:
        listener.execute("LISTEN tidemill_wake")

        def heard() -> list[str]:
            listener.execute("SELECT 1")
            return [each.channel for each in listener.notifies(timeout=0)]

        async with ON_POSTGRES[kind](telling.place) as transaction:
            for payment in ("p-1", "p-2"):
                await transaction.enqueue(telling.capture, payment)
            await transaction.enqueue(telling.keyed("k"), "p-3")
            assert heard() == []
            await transaction.commit()
        assert heard() == ["tidemill_wake"]
        async with ON_POSTGRES[kind](telling.place) as transaction:
            await transaction.enqueue(telling.capture, "p-4")
            await transaction.rollback()
        assert heard() == []


@pytest.mark.parametrize("kind", ["psycopg", "sqlalchemy async session, asyncpg"])
async def test_a_worker_that_polls_seldom_hears_of_the_commit(telling: Shop, kind: str) -> None:
    async with telling.mill.worker(poll_interval="10m"):
        warm = await telling.capture.enqueue("p-1")
        await warm.result(timeout=30)
        async with ON_POSTGRES[kind](telling.place) as transaction:
            ref = await transaction.enqueue(telling.capture, "p-2")
            await transaction.commit()
        assert await ref.result(timeout=30) == "p-2"


def test_the_first_few_transactions_of_a_window_notify_and_no_more(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr("tidemill.adapters.postgres_notify.time.monotonic", lambda: now)
    notifier = Notifier("wake", pytest.fail, enabled=True)
    assert [notifier.rides() for _ in range(RIDERS + 3)] == [True] * RIDERS + [False] * 3
    now += 1
    assert notifier.rides()
    assert not Notifier("wake", pytest.fail, enabled=False).rides()


async def made_to_wait(shop: Shop, second: Open, *calls: Any) -> asyncio.Task[Any]:
    waiting = asyncio.create_task(second.enqueue_many(shop.mill, list(calls)))
    await until(lambda: shop.look(BLOCKED) or waiting.done())
    assert not waiting.done(), waiting.result()
    return waiting


AWAITED = [kind for kind in ON_POSTGRES if "async" in kind]


@pytest.mark.parametrize("kind", AWAITED)
async def test_of_a_call_that_was_cancelled_nothing_is_committed(on_postgres: Shop, kind: str):
    """Whatever the application does with its transaction then."""
    shop, opener = on_postgres, ON_POSTGRES[kind]
    async with opener(shop.place) as first, opener(shop.place) as second:
        ref = await first.enqueue(shop.keyed("k"), "p-1")
        calls = [shop.keyed("j").bind("p-2"), shop.keyed("k").bind("p-2")]
        waiting = await made_to_wait(shop, second, *calls)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with suppress(Exception):
            await second.commit()
        await first.commit()
    assert shop.ids() == [ref.id]


@pytest.mark.parametrize("kind", ["psycopg async", "asyncpg", "asyncpg of a pool"])
async def test_after_a_call_that_was_cancelled_the_transaction_goes_on(on_postgres, kind) -> None:
    shop, opener = on_postgres, ON_POSTGRES[kind]
    async with opener(shop.place) as first, opener(shop.place) as second:
        await first.enqueue(shop.keyed("k"), "p-1")
        calls = [shop.keyed("j").bind("p-2"), shop.keyed("k").bind("p-2")]
        waiting = await made_to_wait(shop, second, *calls)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        ref = await second.enqueue(shop.keyed("j"), "p-3")
        assert await second.execute("SHOW lock_timeout") == [("0",)]
        await second.commit()
        await first.rollback()
    assert shop.ids() == [ref.id]


@asynccontextmanager
async def psycopg_through_a_pooler(url: str) -> AsyncGenerator[Open]:
    with psycopg.connect(url, prepare_threshold=None) as connection:
        yield plain_psycopg(connection)


@asynccontextmanager
async def asyncpg_through_a_pooler(url: str) -> AsyncGenerator[Open]:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    async with in_asyncpg(connection) as transaction:
        yield transaction
    await connection.close()


@asynccontextmanager
async def sqlalchemy_through_a_pooler(url: str) -> AsyncGenerator[Open]:
    arguments = {"prepare_threshold": None}
    engine = create_engine(
        sqlalchemy_url(url, "psycopg"), poolclass=pool.NullPool, connect_args=arguments
    )
    with engine.connect() as connection:
        ends = connection.commit, connection.rollback
        yield Open(connection, lambda sql: connection.exec_driver_sql(sql).all(), ends, False)


POOLED = [psycopg_through_a_pooler, asyncpg_through_a_pooler, sqlalchemy_through_a_pooler]


@pytest.mark.parametrize("opener", POOLED)
async def test_through_a_pooler_in_transaction_mode(on_postgres: Shop, pooler: str, opener) -> None:
    shop = on_postgres
    stored = []
    for n in range(6):
        async with opener(pooler) as transaction:
            stored.append(await transaction.enqueue(shop.capture, "p-1"))
            stored.append(await transaction.enqueue(shop.keyed(f"k-{n}"), "p-1"))
            again = await transaction.enqueue(shop.keyed("k-0"), "p-1")
            assert again.deduplicated == (n > 0 or again.id == stored[1].id)
            await transaction.commit()
    assert sorted(shop.ids()) == sorted(ref.id for ref in stored)


async def test_nothing_of_ours_is_left_in_the_sessions_of_a_pooler(on_postgres, pooler) -> None:
    def settings() -> list[Any]:
        with psycopg.connect(pooler, autocommit=True, prepare_threshold=None) as connection:
            names = ("statement_timeout", "lock_timeout", "plan_cache_mode", "TimeZone")
            shown = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
            prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements")
            return [*shown, prepared.fetchone()[0]]

    before = settings()
    for opener in (psycopg_through_a_pooler, asyncpg_through_a_pooler):
        async with opener(pooler) as transaction:
            await transaction.enqueue(on_postgres.keyed("k"), "p-1")
            await transaction.commit()
    assert settings() == before
