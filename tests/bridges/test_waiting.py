"""Two transactions that want the same: who waits, for how long, and with which answer (F3, F4)."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from tests.bridges.conftest import Shop, Where
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE, Open
from tests.waiting import until

from tidemill.bridges.join import join
from tidemill.errors import LockNotGranted, TransactionRefused
from tidemill.store.enqueue import Enqueue

pytestmark = pytest.mark.anyio

ORDER = "INSERT INTO orders (name) VALUES ('o-1')"
BLOCKED = (
    "SELECT 1 FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'"
)
WAITS_BY_ITSELF = [kind for kind in ON_SQLITE if kind != "sqlite3"]
"""All but the one that waits where it begins, which is the application's own wait."""


async def made_to_wait(shop: Shop, second: Open) -> asyncio.Task:
    waiting = asyncio.create_task(second.enqueue(shop.keyed("k"), "p-2"))
    await until(lambda: shop.look(BLOCKED) or waiting.done())
    assert not waiting.done(), waiting.result()
    return waiting


async def test_the_second_with_a_key_answers_the_job_of_a_first_that_commits(on_server: Where):
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        ref = await first.enqueue(shop.keyed("k"), "p-1")
        waiting = await made_to_wait(shop, second)
        await first.commit()
        answer = await waiting
        await second.commit()
    assert (answer.id, answer.deduplicated) == (ref.id, True)
    assert shop.ids() == [ref.id]


async def test_the_second_with_a_key_is_stored_when_the_first_rolls_back(on_server: Where):
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        await first.enqueue(shop.keyed("k"), "p-1")
        waiting = await made_to_wait(shop, second)
        await first.rollback()
        answer = await waiting
        await second.commit()
    assert not answer.deduplicated
    assert shop.ids() == [answer.id]


async def test_of_many_the_one_that_another_stores_meanwhile_is_answered(on_server: Where):
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        ref = await first.enqueue(shop.keyed("k"), "p-1")
        calls = [shop.keyed("j").bind("p-2"), shop.keyed("k").bind("p-2"), shop.capture.bind("p-2")]
        waiting = asyncio.create_task(
            second.enqueue_many(shop.mill, calls)
            if second.awaited
            else asyncio.to_thread(shop.mill.enqueue_many_in, second.tx, calls)
        )
        await until(lambda: shop.look(BLOCKED) or waiting.done())
        await first.commit()
        answers = await waiting
        await second.commit()
    assert [answer.deduplicated for answer in answers] == [False, True, False]
    assert answers[1].id == ref.id
    assert sorted(shop.ids()) == sorted(answer.id for answer in answers)


@pytest.mark.parametrize("kind", ON_POSTGRES)
async def test_waiting_for_a_key_ends_in_time_and_fails_the_transaction(brief_on_postgres, kind):
    shop, opener = brief_on_postgres, ON_POSTGRES[kind]
    async with opener(shop.place) as first, opener(shop.place) as second:
        ref = await first.enqueue(shop.keyed("k"), "p-1")
        await second.execute(ORDER)
        with pytest.raises(LockNotGranted, match="Roll back, and run your transaction again"):
            await second.enqueue(shop.keyed("k"), "p-2")
        for handle in (shop.capture, shop.keyed("l")):
            with pytest.raises(TransactionRefused, match="has failed already"):
                await second.enqueue(handle, "p-2")
        await second.rollback()
        await first.commit()
    assert (shop.ids(), shop.orders()) == ([ref.id], [])


@pytest.mark.parametrize("kind", WAITS_BY_ITSELF)
async def test_waiting_for_the_write_lock_ends_in_time_and_writes_nothing(brief_on_sqlite, kind):
    shop, opener = brief_on_sqlite, ON_SQLITE[kind]
    async with opener(shop.place) as first, opener(shop.place) as second:
        ref = await first.enqueue(shop.capture, "p-1")
        with pytest.raises(LockNotGranted, match="Roll back, and run your transaction again"):
            await second.enqueue(shop.capture, "p-2")
        await second.rollback()
        await first.commit()
    assert shop.ids() == [ref.id]


async def test_without_a_key_nobody_waits(on_server: Where) -> None:
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        one = await first.enqueue(shop.capture, "p-1")
        two = await second.enqueue(shop.capture, "p-1")
        many = await second.enqueue_many(shop.mill, [shop.capture.bind("p-2")] * 2)
        await second.commit()
        await first.commit()
    assert sorted(shop.ids()) == sorted([one.id, two.id, *[ref.id for ref in many]])


async def test_above_read_committed_the_databases_own_error_says_to_try_again(on_server: Where):
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        await second.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await second.execute("SELECT count(*) FROM orders")
        await first.enqueue(shop.keyed("k"), "p-1")
        await first.commit()
        with pytest.raises(Exception, match="could not serialize") as failed:
            await second.enqueue(shop.keyed("k"), "p-2")
        await second.rollback()
    own = failed.value.orig if isinstance(failed.value, DBAPIError) else failed.value
    assert own.sqlstate == "40001"


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
async def test_a_key_is_free_once_its_job_has_ended_whatever_a_snapshot_shows(
    on_server: Where, level: str
) -> None:
    shop = on_server.shop
    ended = await shop.keyed("k").enqueue("p-1")
    async with on_server.transaction() as transaction:
        await transaction.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        await transaction.execute("SELECT count(*) FROM orders")
        await shop.mill.jobs.cancel(ended, actor="ada")
        ref = await transaction.enqueue(shop.keyed("k"), "p-2")
        await transaction.commit()
    assert not ref.deduplicated
    assert sorted(shop.ids()) == sorted([ended.id, ref.id])


async def test_a_key_of_a_job_that_is_active_is_known_from_a_snapshot_too(on_server: Where) -> None:
    shop = on_server.shop
    active = await shop.keyed("k").enqueue("p-1")
    async with on_server.transaction() as transaction:
        await transaction.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        ref = await transaction.enqueue(shop.keyed("k"), "p-2")
        await transaction.commit()
    assert (ref.id, ref.deduplicated) == (active.id, True)
    assert shop.ids() == [active.id]


def test_the_bound_of_one_call_may_be_given(on_postgres: Shop) -> None:
    shop = on_postgres
    with psycopg.connect(shop.place) as first, psycopg.connect(shop.place) as second:
        shop.keyed("k").enqueue_in(first, "p-1")
        joined = join(shop.store, second, lock_wait=timedelta(milliseconds=50))
        with pytest.raises(LockNotGranted):
            joined.perform(Enqueue((shop.keyed("k").bind("p-2").request(),)))
        first.rollback()


def test_a_read_that_is_overtaken_can_never_write(on_sqlite: Shop) -> None:
    shop = on_sqlite
    with closing(sqlite3.connect(shop.place, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM orders").fetchall()
        with closing(sqlite3.connect(shop.place, isolation_level=None)) as other:
            other.execute(ORDER)
        for _ in range(2):
            with pytest.raises(LockNotGranted, match="BEGIN IMMEDIATE"):
                shop.capture.enqueue_in(connection, "p-1")
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        ref = shop.capture.enqueue_in(connection, "p-1")
        connection.execute("COMMIT")
    assert shop.ids() == [ref.id]


def test_a_deferred_transaction_that_has_not_read_takes_the_lock_with_the_job(on_sqlite: Shop):
    shop = on_sqlite
    with closing(sqlite3.connect(shop.place, isolation_level=None)) as connection:
        connection.execute("BEGIN DEFERRED")
        with closing(sqlite3.connect(shop.place, isolation_level=None)) as other:
            other.execute(ORDER)
        ref = shop.keyed("k").enqueue_in(connection, "p-1")
        connection.execute("COMMIT")
    assert shop.ids() == [ref.id]


async def test_an_open_transaction_on_a_server_holds_up_nobody_elses_jobs(on_server: Where):
    shop = on_server.shop
    async with on_server.transaction() as transaction, shop.mill.worker():
        held = await transaction.enqueue(shop.keyed("k"), "p-1")
        other = await shop.keyed("l").enqueue("p-2")
        assert await other.result(timeout=30) == "p-2"
        await transaction.commit()
        assert await held.result(timeout=30) == "p-1"
