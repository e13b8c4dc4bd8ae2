"""A worker reports and claims while its handlers use up every connection of the store."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from datetime import timedelta

import psycopg
from tests.adapters.conftest import LEASE
from tests.waiting import until

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.bridges.join import join
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain

POOL = 3


@asynccontextmanager
async def calls_that_wait(bench, number):
    """Calls of handlers, each of which waits for a key that another transaction has taken."""
    jobs = [bench.job(idempotency_key="taken") for _ in range(number)]
    calls = [asyncio.create_task(bench.store.perform(Enqueue((job,)))) for job in jobs]
    try:
        yield calls
    finally:
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


async def let_go(holder):
    """Once every task that was made before has begun."""
    holder.execute("ROLLBACK")


def waiting_on_postgres(watcher):
    asked = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return watcher.execute(asked).fetchone()[0]


async def test_on_postgresql_a_workers_own_calls_have_connections_of_their_own(
    mill, postgres_url, clock
):
    own = mill.job()
    mill.enqueue(own)
    worker = mill.register()
    patient = timedelta(minutes=5)
    with (
        psycopg.connect(postgres_url) as holder,
        psycopg.connect(postgres_url, autocommit=True) as watcher,
        closing(
            PostgresStore(
                postgres_url, clock=clock, hints=False, async_pool=POOL,
                lock_timeout=patient, statement_timeout=patient,
            )
        ) as store,
    ):  # fmt: skip
        join(store, holder).perform(Enqueue((mill.job(idempotency_key="taken"),)))
        mill.store = store
        async with calls_that_wait(mill, POOL * 2) as calls:
            await until(lambda: waiting_on_postgres(watcher) == POOL)
            request = mill.request()
            answer = await store.perform(Exchange(worker=worker, claim=request))
            await store.perform(Maintain(lease=LEASE))
            assert [job.id for job in answer.claimed] == [own.id]
            assert not any(call.done() for call in calls)
            holder.rollback()


async def test_on_sqlite_a_workers_own_calls_come_first(bench, path):
    own = bench.job()
    bench.enqueue(own)
    worker = bench.register()
    ended = []

    async def perform(what, operation):
        answer = await store.perform(operation)
        ended.append(what)
        return answer

    with (
        closing(sqlite3.connect(path, isolation_level=None)) as holder,
        closing(SqliteStore(path, clock=bench.clock)) as store,
    ):
        holder.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as calls:
            for _ in range(9):
                calls.create_task(perform("a handler's", Enqueue((bench.job(),))))
            claim = Exchange(worker=worker, claim=bench.request())
            claiming = calls.create_task(perform("its own", claim))
            calls.create_task(let_go(holder))
        assert own.id in [job.id for job in claiming.result().claimed]
    assert ended.index("its own") <= 1, "one call was under way before it"
