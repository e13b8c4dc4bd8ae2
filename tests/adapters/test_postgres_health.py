"""What a PostgreSQL server says of itself: sessions, locks, tables, and who stands between."""

from contextlib import closing, contextmanager
from datetime import timedelta
from threading import Thread

import psycopg
import pytest
from tests.postgres.servers import fresh_database
from tests.waiting import wait_until

from tidemill.adapters.postgres import PostgresStore
from tidemill.errors import SchemaError, StoreUnavailable
from tidemill.sql.programs import doctor
from tidemill.store.doctor import ExamineDeadLetters
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs
from tidemill.values.ids import JobId, uuid7
from tidemill.values.jobs import NewJob


@pytest.fixture(params=["postgres_18", "postgres_15"])
def url(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def store(url):
    with closing(PostgresStore(url)) as store:
        yield store


@pytest.fixture
def at_once(monkeypatch):
    """Transactions are long from their first moment."""
    monkeypatch.setattr(doctor, "OPEN_LONG", timedelta(0))


def one_job(store, number=1):
    job = NewJob(id=JobId(uuid7(number, number)), wire_name="w", queue="q")
    store.perform_sync(Enqueue((job,)))


def test_a_server_tells_its_version_settings_and_tables(store, url):
    health = store.examine()
    assert health.product == "PostgreSQL"
    assert health.settings["version"][:2] in {"15", "18"}
    assert health.settings["synchronous_commit"] == "off"
    assert health.settings["standby"] == "false"
    assert health.settings["sees_all_sessions"] == "true"
    assert 0 < int(health.settings["connections"]) <= int(health.settings["max_connections"])
    assert health.settings["pooler"] == "no"
    assert "tidemill.jobs" in {table.name for table in health.tables}
    assert all(table.size > 0 for table in health.tables if table.name == "tidemill.jobs")
    assert "password" not in health.place


def test_a_transaction_is_told_with_what_it_holds_and_whom_it_keeps_waiting(store, url, at_once):
    one_job(store)
    with (
        psycopg.connect(url, application_name="billing") as holder,
        psycopg.connect(url, application_name="waiter") as waiter,
    ):
        holder.execute("UPDATE tidemill.jobs SET priority = 3")
        waits = Thread(target=waiter.execute, args=["UPDATE tidemill.jobs SET priority = 4"])
        waits.start()
        wait_until(lambda: any(each.blocks for each in store.examine().sessions))
        sessions = {each.application: each for each in store.examine().sessions}
        holder.rollback()
        waits.join()
        waiter.rollback()
        seen = sessions["billing"]
        assert (seen.pid, seen.blocks) == (holder.info.backend_pid, 1)
        assert (seen.state, seen.user) == ("idle in transaction", "postgres")
        assert seen.holds == "RowExclusiveLock on jobs"
        assert seen.idle_for <= seen.open_for
        assert sessions["waiter"].blocks == 0
        assert sessions["waiter"].idle_for is None


def test_a_short_transaction_is_nobodys_trouble(store, url):
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1")
        assert store.examine().sessions == ()


def test_asking_waits_for_no_row_and_holds_none(store, url):
    one_job(store)
    with psycopg.connect(url) as holder:
        holder.execute("UPDATE tidemill.jobs SET priority = 3")
        assert store.examine().schema.fits
        assert store.perform_sync(ExamineDeadLetters()).groups == ()
        holder.rollback()


def test_a_question_that_takes_too_long_ends_by_the_statement_time_out(url):
    limit = timedelta(milliseconds=200)
    with (
        closing(PostgresStore(url, statement_timeout=limit, lock_timeout=limit)) as store,
        psycopg.connect(url) as holder,
    ):
        holder.execute("LOCK TABLE tidemill.jobs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match=r"gave up 'dead_letters'"):
            store.perform_sync(ExamineDeadLetters())
        holder.rollback()


def test_a_pooler_between_is_noticed_and_does_not_disturb(pooler):
    with closing(PostgresStore(pooler)) as store:
        health = store.examine()
    assert health.settings["pooler"] == "yes"
    assert health.settings["prepared_statements"] == "auto"


@contextmanager
def plain_user(url):
    """The same database as somebody who may see no other's sessions."""
    name = "tidemill_plain"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'plain'")
        connection.execute(f"GRANT USAGE ON SCHEMA tidemill TO {name}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA tidemill TO {name}")
        try:
            yield url.replace("postgres:@", f"{name}:plain@").replace("postgres@", f"{name}@")
        finally:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_plain_user_is_told_that_other_sessions_are_hidden(postgres_18):
    with plain_user(postgres_18) as url, closing(PostgresStore(url)) as store:
        health = store.examine()
    assert health.settings["sees_all_sessions"] == "false"


def test_a_database_without_our_schema_is_examined_and_refused_for_reading(
    postgres_18_server, worker_id
):
    with fresh_database(postgres_18_server, f"bare_{worker_id}") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA tidemill CASCADE")
        with closing(PostgresStore(url)) as store:
            health = store.examine()
            assert (health.schema.version, health.schema.fits) == (0, False)
            with pytest.raises(SchemaError, match=r"has no Tidemill tables in its schema"):
                store.perform_sync(CountJobs())
