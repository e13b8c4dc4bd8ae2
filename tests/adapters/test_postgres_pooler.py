"""Behind pgbouncer in transaction mode: two sessions of the server serve all our connections."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest
from tests.adapters.conftest import LEASE

from tidemill.adapters.postgres import PostgresStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat
from tidemill.store.monitor import CountJobs
from tidemill.values.outcomes import Answer
from tidemill.values.states import JobState


@pytest.fixture
def pooled(pooler, postgres_url, clock):
    store = PostgresStore(
        pooler, clock=clock, prepared_statements="off", listen_url=postgres_url, sync_pool=6
    )
    yield store
    store.close()


def settled(answer, outcome, reports):
    again = {each.job_id for each in answer.reported if each.answer is Answer.BUSY}
    waiting = tuple(each for each in reports if each.job_id in again)
    return waiting + tuple(outcome(job) for job in answer.claimed)


def test_threads_drain_a_queue_through_the_pooler(mill, pooled, outcome):
    mill.enqueue(*[mill.job() for _ in range(120)])
    workers = [mill.register() for _ in range(6)]

    def work(worker):
        done, reports = [], ()
        while True:
            ask = Exchange(worker=worker, outcomes=reports, claim=mill.request(limit=5))
            answer = pooled.perform_sync(ask)
            done += [each.job_id for each in answer.reported if each.answer is Answer.APPLIED]
            reports = settled(answer, outcome, reports)
            if not reports:
                return done

    with ThreadPoolExecutor(6) as threads:
        done = Counter(job for each in threads.map(work, workers) for job in each)
    assert len(done) == 120
    assert set(done.values()) == {1}


def test_coroutines_drain_a_queue_through_the_pooler(mill, pooled, outcome):
    workers = [mill.register() for _ in range(6)]

    async def work(worker):
        reports = ()
        while True:
            ask = Exchange(worker=worker, outcomes=reports, claim=mill.request(limit=5))
            answer = await pooled.perform(ask)
            reports = settled(answer, outcome, reports)
            if not reports:
                return

    async def story():
        await asyncio.gather(*[pooled.perform(Enqueue((mill.job(),))) for _ in range(60)])
        await asyncio.gather(*map(work, workers))

    asyncio.run(story())
    (count,) = mill.store.perform_sync(CountJobs())
    assert (count.state, count.count) == (JobState.SUCCEEDED, 60)


def test_nothing_of_ours_is_left_in_the_sessions_that_others_are_handed(mill, pooled, pooler):
    def settings():
        with psycopg.connect(pooler, autocommit=True, prepare_threshold=None) as connection:
            names = ("statement_timeout", "lock_timeout", "plan_cache_mode", "TimeZone")
            shown = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
            prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements")
            return [*shown, prepared.fetchone()[0]]

    before = settings()
    mill.enqueue(mill.job())
    for _ in range(20):
        pooled.perform_sync(Enqueue((mill.job(), mill.job())))
    asyncio.run(pooled.perform(Enqueue((mill.job(), mill.job()))))
    assert settings() == before


def test_a_heart_beats_and_a_hint_comes_through_beside_it(mill, pooled):
    wake = Event()
    stop = pooled.watch(wake.set)
    assert wake.wait(10)
    with pooled.dedicated() as heart:
        assert heart.perform(Beat(worker=mill.register(), lease=LEASE)).live
    stop()
