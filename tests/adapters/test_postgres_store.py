"""The store itself: opening, loops, threads, forks, time-outs, prepared statements (N1–N4)."""

import asyncio
import gc
import os
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.adapters.postgres_proxy import Cable

from tidemill.adapters.postgres import PostgresStore
from tidemill.config import open_store
from tidemill.errors import ConfigurationError, SchemaError, StoreError
from tidemill.sql.migrations import migrations
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.monitor import CountJobs, GetEnd, GetJob
from tidemill.values.bounds import DEFAULT_BOUNDS

SECRET = "postgresql://miller:s3cret@db.example:6432/mill?sslmode=require&keepalives=1"


def test_constructing_a_store_opens_nothing():
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/nowhere")
    assert store.bounds == DEFAULT_BOUNDS
    store.close()


def test_a_store_never_shows_its_password():
    store = PostgresStore(SECRET)
    assert repr(store) == "<PostgresStore postgresql://miller@db.example:6432/mill>"
    assert "s3cret" not in repr(store._site)
    store.close()


def test_a_url_may_say_how_the_store_is_used():
    url = f"{SECRET}&schema=other&prepared_statements=off&hints=off"
    store = open_store(url, DEFAULT_BOUNDS, lambda: datetime.now(UTC))
    assert isinstance(store, PostgresStore)
    site = store._site
    assert (site.catalogue.dialect.schema, site.prepared) == ("other", "off")
    assert not store._listens
    assert site.url.libpq == SECRET
    assert "keepalives" not in site.url.asyncpg
    store.close()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mysql://h/d", {}),
        ("postgresql://h:port/d", {}),
        ("postgresql://h/d", {"schema": "Mill"}),
        ("postgresql://h/d", {"prepared_statements": "maybe"}),
    ],
)
def test_what_cannot_work_is_refused_at_once(url, options):
    with pytest.raises(ConfigurationError):
        PostgresStore(url, **options)


def test_a_schema_that_is_missing_names_the_command(postgres_url):
    store = PostgresStore(postgres_url, schema="elsewhere")
    with pytest.raises(SchemaError, match="tidemill migrate"):
        store.perform_sync(CountJobs())
    with pytest.raises(SchemaError, match="tidemill migrate"):
        asyncio.run(store.perform(CountJobs()))
    (name, text), *_ = store.plan()
    assert name == "0001_initial"
    assert 'CREATE TABLE "elsewhere".jobs' in text
    store.close()


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("postgresql://app@db/mill", "--store 'postgresql://app@db/mill?schema=elsewhere'"),
        (SECRET, "--app MODULE:ATTRIBUTE"),
    ],
)
def test_the_command_names_the_store_unless_its_url_holds_a_password(url, command):
    store = PostgresStore(url, schema="elsewhere")
    for steps in (migrations("postgres"), migrations("postgres")[1:]):
        with pytest.raises(SchemaError) as refused:
            store._site.require(steps)
        assert f"run `tidemill migrate {command}`" in str(refused.value)
        assert "s3cret" not in str(refused.value)
    store.close()


def test_a_schema_may_be_brought_up_to_date_at_first_use(postgres_url):
    store = PostgresStore(postgres_url, schema="another", auto_migrate=True)
    assert asyncio.run(store.perform(CountJobs())) == ()
    assert store.plan() == ()
    assert store.migrate() == ()
    store.close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA another CASCADE")


def test_a_table_that_goes_missing_is_a_schema_that_does_not_fit(mill, postgres_url):
    store = PostgresStore(postgres_url, schema="torn", auto_migrate=True)
    store.perform_sync(CountJobs())
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA torn CASCADE")
    with pytest.raises(SchemaError, match="tidemill migrate"):
        store.perform_sync(CountJobs())
    store.close()


def test_a_store_that_was_closed_says_so(postgres):
    postgres.close()
    postgres.close()
    with pytest.raises(StoreError, match="was closed"):
        postgres.perform_sync(CountJobs())
    with pytest.raises(StoreError, match="was closed"):
        asyncio.run(postgres.perform(CountJobs()))


def test_every_loop_has_connections_of_its_own(mill, postgres):
    for _ in range(3):
        asyncio.run(postgres.perform(Enqueue((mill.job(),))))
    (count,) = postgres.perform_sync(CountJobs())
    assert count.count == 3
    gc.collect()


async def test_a_store_may_be_closed_from_within_a_loop(postgres):
    assert await postgres.perform(CountJobs()) == ()
    postgres.close()


async def test_a_call_that_is_given_up_leaves_the_pool_whole(mill, postgres_url, clock):
    store = PostgresStore(postgres_url, clock=clock, async_pool=1, hints=False)
    job = mill.job(idempotency_key="k")
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE tidemill.jobs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await store.perform(Enqueue((job,)))
    (answer,) = await store.perform(Enqueue((job,)))
    assert not answer.repeated
    store.close()


def test_a_dedicated_channel_is_a_connection_of_its_own(mill, postgres):
    worker = mill.register()
    with postgres.dedicated() as heart:
        assert heart.perform(Beat(worker=worker, lease=timedelta(seconds=60))).live


def test_a_forked_child_opens_connections_of_its_own(mill, postgres):
    mill.enqueue(mill.job())
    asyncio.run(postgres.perform(CountJobs()))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            (count,) = postgres.perform_sync(CountJobs())
            status = 0 if count.count == 1 else 2
            gc.collect()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    (count,) = postgres.perform_sync(CountJobs())
    assert count.count == 1


@pytest.mark.parametrize("prepared", ["auto", "off"])
def test_statements_are_prepared_or_not_as_asked(mill, postgres_url, clock, prepared):
    store = PostgresStore(postgres_url, clock=clock, prepared_statements=prepared, hints=False)

    async def count_prepared():
        for _ in range(7):
            await store.perform(Enqueue((mill.job(),)))
        pool = store._opened.coroutines._of_this_loop()._calls
        async with pool.lend() as executor:
            return await executor._connection.fetchval(
                "SELECT count(*) FROM pg_prepared_statements"
            )

    for _ in range(7):
        store.perform_sync(Enqueue((mill.job(),)))
    with store._opened._pool.lend() as executor:
        asked = executor._connection.execute(
            "SELECT count(*) FROM pg_prepared_statements", prepare=False
        )
        by_psycopg = asked.fetchone()[0]
    by_asyncpg = asyncio.run(count_prepared())
    if prepared == "off":
        assert (by_psycopg, by_asyncpg) == (0, 0)
    else:
        assert by_psycopg >= 2
        assert by_asyncpg >= 2
    store.close()


def test_no_setting_outlives_its_transaction(mill, postgres):
    """What a pooler would hand to the next client."""
    names = ("statement_timeout", "lock_timeout", "plan_cache_mode", "TimeZone", "search_path")
    postgres.perform_sync(CountJobs())
    with postgres._opened._pool.lend() as executor:
        fresh = psycopg.connect(postgres._site.url.libpq, autocommit=True)
        before = {name: fresh.execute(f"SHOW {name}").fetchone()[0] for name in names}
        fresh.close()
        connection = executor._connection
    mill.enqueue(mill.job(), mill.job())
    after = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in names}
    assert after == before


def test_every_transaction_bounds_its_statements_and_its_locks(postgres):
    postgres.perform_sync(CountJobs())
    with postgres._opened._pool.lend() as executor:
        executor.begin(write=True)
        shown = [
            executor._connection.execute(f"SHOW {name}").fetchone()[0]
            for name in ("statement_timeout", "lock_timeout", "plan_cache_mode")
        ]
        executor.rollback()
    assert shown == ["10s", "3s", "force_generic_plan"]


@contextmanager
def in_zone(url, zone):
    """New sessions of the database find themselves in this zone."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET TimeZone = '{zone}'")
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} RESET TimeZone")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("way", ["thread", "loop"])
def test_instants_are_utc_to_the_microsecond_whatever_the_sessions_zone(
    mill, postgres_url, way, zone
):
    last = datetime.max.replace(tzinfo=UTC)
    jobs = [mill.job(due_at=last), mill.job(not_after=last), mill.job(timeout=timedelta.max)]
    with in_zone(postgres_url, zone):
        store = PostgresStore(postgres_url, hints=False)

        def perform(operation):
            if way == "thread":
                return store.perform_sync(operation)
            return asyncio.run(store.perform(operation))

        perform(Enqueue(tuple(jobs)))
        records = [perform(GetJob(job.id)).record for job in jobs]
        store.close()
    assert records[0].due_at == last
    assert records[1].not_after == last
    assert records[2].timeout == timedelta.max
    assert {each.created_at.tzinfo for each in records} == {UTC}


def test_the_stores_clock_is_the_servers(mill, postgres_url):
    store = PostgresStore(postgres_url, hints=False)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        before = connection.execute("SELECT clock_timestamp()").fetchone()[0]
        job = mill.job()
        store.perform_sync(Enqueue((job,)))
        after = connection.execute("SELECT clock_timestamp()").fetchone()[0]
    assert before <= mill.get(job.id).record.created_at <= after
    store.close()


def test_a_read_needs_one_trip_and_no_transaction(mill, postgres_url, clock):
    cable = Cable(postgres_url)
    store = PostgresStore(cable.url, clock=clock, hints=False)
    mill.enqueue(job := mill.job())
    store.perform_sync(GetEnd(job.id))
    cable.cut_at(b"BEGIN", after=False)
    assert store.perform_sync(GetEnd(job.id)).state == "ready"
    assert cable.cuts == 0
    store.close()
    cable.close()


@pytest.mark.parametrize(("needs", "works"), [(1, True), (99, False)])
def test_a_newer_schema_is_used_where_it_says_that_we_may(postgres_url, needs, works):
    store = PostgresStore(postgres_url, schema="newer", auto_migrate=True, hints=False)
    store.migrate()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE newer.meta SET value = 99 WHERE name = 'version'")
        connection.execute(
            "UPDATE newer.meta SET value = %s WHERE name = 'min_compatible'", (needs,)
        )
        if works:
            assert store.perform_sync(CountJobs()) == ()
        else:
            with pytest.raises(SchemaError, match="Upgrade Tidemill"):
                store.perform_sync(CountJobs())
        connection.execute("DROP SCHEMA newer CASCADE")
    store.close()
