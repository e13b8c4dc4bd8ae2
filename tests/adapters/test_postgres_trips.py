"""How often the server is asked: what is hot or idle asks once, and what is calm does not (B10)."""

from datetime import timedelta

import psycopg
import pytest
from tests.adapters.conftest import LEASE
from tests.adapters.ways import WAYS

from tidemill.adapters.postgres import PostgresStore
from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain
from tidemill.store.monitor import GetEnd
from tidemill.values.states import JobState


@pytest.fixture
def trips(monkeypatch):
    """What both drivers send, in order."""
    sent = []
    for kind in (AsyncpgExecutor, PsycopgExecutor):
        for name in ("begin", "step", "commit"):
            monkeypatch.setattr(kind, name, recorded(getattr(kind, name), name, sent))
    return sent


def recorded(method, name, sent):
    def wrapped(*given, **options):
        sent.append(given[1].name if name == "step" else name)
        return method(*given, **options)

    return wrapped


@WAYS
def test_an_idle_poll_a_beat_a_single_enqueue_and_a_read_are_one_statement_each(
    mill, trips, perform
):
    worker = mill.register()
    idle = Exchange(worker=worker, claim=mill.request())
    job = mill.job()
    for operation, statement in (
        (idle, "opening"),
        (Beat(worker=worker, lease=LEASE), "beat"),
        (Maintain(lease=LEASE), "upkeep"),
        (Enqueue((job,)), "insert_one"),
        (GetEnd(job.id), "job_end"),
    ):
        trips.clear()
        perform(mill.store, operation)
        assert trips == [statement]


@WAYS
def test_reports_and_a_claim_are_one_transaction_of_three_statements(mill, trips, perform, outcome):
    mill.enqueue(*[mill.job() for _ in range(200)])
    worker = mill.register()
    claimed = mill.claim(worker, limit=100)
    trips.clear()
    reports = tuple(outcome(job) for job in claimed)
    answer = perform(
        mill.store, Exchange(worker=worker, outcomes=reports, claim=mill.request(limit=100))
    )
    assert trips == ["begin", "opening", "finish_plain", "ready_jobs", "commit"]
    assert len(answer.claimed) == 100


def test_a_bulk_enqueue_costs_the_same_whatever_its_size(mill, trips):
    mill.enqueue(mill.job())
    for size in (2, 500):
        trips.clear()
        mill.enqueue(*[mill.job() for _ in range(size)])
        assert trips == ["begin", "clock", "stored_jobs", "insert_job", "commit"]


def test_a_beat_whose_lease_is_dead_is_looked_at_and_noted(mill, trips, clock):
    worker = mill.register()
    clock.advance(LEASE)
    trips.clear()
    assert not mill.store.perform_sync(Beat(worker=worker, lease=LEASE)).live
    assert trips == ["beat", "begin", "worker_lease", "note_lapse", "commit"]


def test_calm_upkeep_on_the_servers_clock_is_not_asked_for_again(mill, trips, postgres_url):
    store = PostgresStore(postgres_url, hints=False)
    for _ in range(5):
        assert store.perform_sync(Maintain(lease=LEASE)).lapsed == ()
    assert trips.count("upkeep") == 1
    store._site.calm._until = 0.0
    store.perform_sync(Maintain(lease=LEASE))
    assert trips.count("upkeep") == 2
    store.close()


def test_upkeep_that_did_something_is_asked_for_again(mill, trips, postgres_url):
    store = PostgresStore(postgres_url, hints=False)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        jobs = [mill.job(), mill.job()]
        mill.enqueue(*jobs)
        mill.claim(mill.register(), limit=1)
        assert store.perform_sync(Maintain(lease=LEASE)).lapsed, "virtual time stands in the past"
        trips.clear()
        store.perform_sync(Maintain(lease=LEASE))
        assert trips[0] == "upkeep"
        assert connection.execute("SELECT count(*) FROM tidemill.jobs").fetchone() == (2,)
    store.close()


def test_a_job_that_the_claim_may_not_start_by_itself_is_judged_by_the_rules(mill, trips, clock):
    known, strange = mill.job(), mill.job(wire_name="t.strange", priority=9)
    expiring = mill.job(expires=timedelta(seconds=1), priority=8)
    mill.enqueue(strange, expiring, known)
    worker = mill.register()
    clock.advance(timedelta(seconds=1))
    trips.clear()
    assert [job.id for job in mill.claim(worker)] == [known.id]
    assert trips.count("ready_jobs") == 1
    assert "start_jobs" not in trips
    assert mill.get(strange.id).record.held is not None
    assert mill.get(expiring.id).record.state is JobState.CANCELLED


def test_a_job_that_lapsed_before_is_started_once_the_rules_allow_it(mill, trips, clock):
    mill.enqueue(mill.job())
    mill.claim(mill.register())
    clock.advance(LEASE)
    mill.maintain()
    clock.advance(LEASE)
    trips.clear()
    (job,) = mill.claim(mill.register())
    assert job.attempt == 2
    assert trips.count("start_jobs") == 1
