"""On PostgreSQL too a crash between any two steps of any program leaves nothing half-written (D3).

The story is SQLite's: each operation is performed once whole and once for every step at which it
can die, and each time from the same rows, which are kept aside and put back.
"""

import json

import psycopg
import pytest
from tests.adapters.test_sqlite_crashes import ONLY_STALE, STORY, Crash, Crashing, same
from tests.postgres.servers import TABLES

from tidemill.drivers.postgres_session import Limits, beginnings
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.drivers.run import run
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.postgres import PostgresDialect
from tidemill.sql.migrations import migrate
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import program_for
from tidemill.values.bounds import DEFAULT_BOUNDS

CATALOGUE = Catalogue(PostgresDialect())
ENV = Env(CATALOGUE.dialect, DEFAULT_BOUNDS)


class Database:
    """The tables, as rows that can be kept aside, compared and put back."""

    def __init__(self, url, clock):
        self.url, self.clock = url, clock
        self.keeper = psycopg.connect(url, autocommit=True)
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self.executor = PsycopgExecutor(self.connection, CATALOGUE, beginnings(Limits()), clock)

    def dump(self):
        return {
            table: sorted(
                json.dumps(_without_place(row), sort_keys=True)
                for (row,) in self.keeper.execute(f"SELECT to_jsonb(t) FROM tidemill.{table} AS t")
            )
            for table in TABLES
        }

    def keep(self):
        self.keeper.execute("DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept")
        for table in TABLES:
            self.keeper.execute(f"CREATE TABLE kept.{table} AS TABLE tidemill.{table}")

    def put_back(self):
        for table in TABLES:
            self.keeper.execute(
                f"DELETE FROM tidemill.{table};"
                f" INSERT INTO tidemill.{table} OVERRIDING SYSTEM VALUE SELECT * FROM kept.{table}"
            )

    def close(self):
        self.keeper.execute("DROP SCHEMA IF EXISTS kept CASCADE")
        self.keeper.close()
        self.connection.close()


class Dying(Crashing):
    """Dies at its n-th step or commit, and remembers the rows after each commit."""

    def __init__(self, database, at, *, after):
        super().__init__(database.executor, at, after=after)
        self.database = database

    def commit(self):
        def commit():
            self.inner.commit()
            self.commits.append(self.database.dump())

        self._do(commit)


def _without_place(row):
    row.pop("seq", None)
    return row


def settled(dump):
    """The rows but for stale records, which may be lost or doubled with the process."""
    counted = [row for row in dump["attempts"] if not json.loads(row)["stale"]]
    return {**dump, "attempts": counted}


@pytest.fixture
def database(postgres_url, clock):
    database = Database(postgres_url, clock)
    yield database
    database.close()


def perform(operation, on):
    return run(program_for(operation, ENV), on, write=True)


@pytest.mark.parametrize("after", [False, True], ids=["before-a-step", "after-a-step"])
def test_a_crash_at_any_step_leaves_a_commit_or_nothing(database, clock, after):
    crashes = 0
    for wait, operation in STORY:
        clock.advance(wait)
        database.keep()
        before = database.dump()
        whole = Dying(database, 0, after=after)
        said = perform(operation, whole)
        final = database.dump()
        assert settled(final) != settled(before) or operation is ONLY_STALE
        for at in range(1, whole.count + 1):
            database.put_back()
            dying = Dying(database, at, after=after)
            with pytest.raises(Crash):
                perform(operation, dying)
            left = database.dump()
            assert left in [before, *whole.commits]
            assert left == [before, *dying.commits][-1]
            again = perform(operation, database.executor)
            assert same(said, again), f"{type(operation).__name__} crashed at {at}: {again}"
            assert settled(database.dump()) == settled(final), f"{type(operation).__name__} at {at}"
            crashes += 1
        database.put_back()
        perform(operation, database.executor)
    assert crashes > 60


@pytest.mark.parametrize("after", [False, True], ids=["before-a-step", "after-a-step"])
def test_a_migration_that_dies_at_any_step_is_run_again(database, clock, after):
    catalogue = Catalogue(PostgresDialect("dying"))
    executor = PsycopgExecutor(database.connection, catalogue, beginnings(Limits()), clock)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'dying'"
    at = 0
    while True:
        at += 1
        database.keeper.execute("DROP SCHEMA IF EXISTS dying CASCADE")
        dying = Crashing(executor, at, after=after)
        dying.commit = lambda dying=dying: dying._do(dying.inner.commit)
        try:
            run(migrate("postgres"), dying, write=True)
        except Crash:
            assert database.keeper.execute(tables).fetchone()[0] in {0, 7, 8}
            run(migrate("postgres"), executor, write=True)
        else:
            break
        assert database.keeper.execute(tables).fetchone()[0] == 8
    database.keeper.execute("DROP SCHEMA dying CASCADE")
    assert at > 10
