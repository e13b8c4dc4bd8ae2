"""A store on a file of its own, under virtual time, with one worker's usual requests."""

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.contract import Store
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import JobId, WorkerId, uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.workers import WorkerInfo

LEASE = timedelta(seconds=60)


@dataclass
class Bench:
    """Short words for long requests."""

    store: Store
    clock: VirtualClock
    made: int = 0

    def fresh(self):
        self.made += 1
        return uuid7(self.made, int.from_bytes(os.urandom(10), "big"))

    def job(self, **options):
        return NewJob(**{"id": JobId(self.fresh()), "wire_name": "t.job", **options})

    def enqueue(self, *jobs):
        return self.store.perform_sync(Enqueue(jobs))

    def register(self, names=("t.job",), queues=("default",)):
        worker = WorkerId(self.fresh())
        info = WorkerInfo(
            id=worker, host="host", pid=1, version="0", queues=queues,
            wire_names=frozenset(names), slots=10,
        )  # fmt: skip
        self.store.perform_sync(Register(info=info, lease=LEASE))
        return worker

    def request(self, limit=10, queues=("default",), names=frozenset({"t.job"})):
        shares = tuple(Share(queue, limit) for queue in queues)
        return ClaimRequest(shares=shares, limit=limit, wire_names=names)

    def claim(self, worker, limit=10, **options):
        request = self.request(limit, **options)
        return self.store.perform_sync(Exchange(worker=worker, claim=request)).claimed

    def report(self, worker, *outcomes):
        return self.store.perform_sync(Exchange(worker=worker, outcomes=outcomes)).reported

    def maintain(self, limit=500):
        return self.store.perform_sync(Maintain(lease=LEASE, limit=limit))

    def get(self, job_id):
        return self.store.perform_sync(GetJob(job_id))


def outcome(claimed, verdict=Verdict.SUCCEEDED, **more):
    return Outcome(job_id=claimed.id, attempt=claimed.attempt, verdict=verdict, **more)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def store(path: Path, clock: VirtualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(path, clock=clock, busy_timeout=timedelta(milliseconds=50))
    yield store
    store.close()


@pytest.fixture
def bench(store: SqliteStore, clock: VirtualClock) -> Bench:
    return Bench(store, clock)


@pytest.fixture
def alter(path):
    """Change rows behind everyone's back."""

    def execute(sql, *values):
        with sqlite3.connect(path) as connection:
            assert connection.execute(sql, values).rowcount
        connection.close()

    return execute


@pytest.fixture
def postgres(postgres_url: str, clock: VirtualClock) -> Iterator[PostgresStore]:
    """An empty store on PostgreSQL 18, on the virtual clock."""
    store = PostgresStore(postgres_url, clock=clock, hints=False)
    yield store
    store.close()


@pytest.fixture
def mill(postgres: PostgresStore, clock: VirtualClock) -> Bench:
    """Short words for requests to PostgreSQL."""
    return Bench(postgres, clock)


@pytest.fixture
def watcher(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A session of its own, that looks at what others do."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(name="outcome")
def outcome_fixture():
    return outcome
