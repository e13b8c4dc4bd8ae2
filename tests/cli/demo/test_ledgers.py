"""The demonstration's own reading of the tables says what the library's monitor says."""

from contextlib import closing

import psycopg
import pytest
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.cli.demo.ledgers import STATES, VERDICTS, PostgresLedger, SqliteLedger
from tidemill.conformance import scenes
from tidemill.conformance.endstates import ENDED
from tidemill.sql import codes
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.values.outcomes import Verdict


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, clock):
    """A store and the ledger of its tables."""
    if request.param == "sqlite":
        file = request.getfixturevalue("tmp_path") / "jobs.db"
        store, ledger = SqliteStore(file, clock=clock), SqliteLedger(file)
    else:
        url = request.getfixturevalue("postgres_url")
        store, ledger = PostgresStore(url, clock=clock), PostgresLedger(url, "tidemill")
    with closing(store):
        store.migrate()
        yield store, ledger


def test_each_job_and_each_end_of_an_attempt_reads_as_the_monitor_shows_it(place, clock):
    store, ledger = place
    ids = [make(store) for make in ENDED.values()]
    late = scenes.start(store, scenes.register(store))
    scenes.lapse(store, clock)
    scenes.report(store, late, Verdict.SUCCEEDED)
    entries = {entry.id: entry for entry in ledger.entries()}
    assert entries.keys() == {*ids, late.id}
    for job_id, entry in entries.items():
        job = store.perform_sync(GetJob(job_id))
        assert (entry.state, entry.cause) == (job.record.state, job.record.cause)
        assert (entry.attempt, entry.lapses) == (job.record.attempt, job.record.lapses)
        assert (entry.payload, entry.output) == (job.payload, job.output)
        assert [
            (end.attempt, end.worker, end.verdict, end.stale, end.ended_at) for end in entry.ends
        ] == [
            (each.attempt, each.worker, each.verdict, each.stale, each.ended_at)
            for each in job.attempts
        ]
    assert [end.stale for end in entries[late.id].ends] == [False, True]


def test_its_words_are_those_of_the_codes_on_disk():
    assert list(STATES) == [state.value for state in codes.STATES]
    assert list(VERDICTS) == [verdict.value for verdict in codes.VERDICTS]


def test_a_file_is_not_calm_while_somebody_writes(tmp_path):
    import sqlite3

    ledger = SqliteLedger(tmp_path / "jobs.db")
    assert ledger.calm()
    with closing(sqlite3.connect(ledger.file, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert not ledger.calm()


def test_a_database_is_not_calm_while_a_transaction_stands_still_at_its_tables(postgres_url):
    ledger = PostgresLedger(postgres_url, "tidemill")
    assert ledger.calm()
    with psycopg.connect(postgres_url) as db:
        db.execute("UPDATE tidemill.meta SET value = value")
        assert not ledger.calm()
        db.rollback()
    assert ledger.calm()


def test_another_applications_transaction_leaves_a_database_calm(postgres_url):
    with psycopg.connect(postgres_url) as db:
        db.execute("SELECT 1")
        assert PostgresLedger(postgres_url, "tidemill").calm()
