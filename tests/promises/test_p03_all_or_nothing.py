"""P3: state, output, tags and key of an end are seen together, or none of them."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from tests.promises import promised
from tests.promises.books import balanced
from tests.waiting import wait_until

from tidemill.sql.codes import state_of
from tidemill.values.states import JobState

JOBS = 30


def enqueue_keyed():
    handle = promised.work
    return [
        handle.with_options(idempotency_key=f"k{number}").sync.enqueue(0.05).id
        for number in range(JOBS)
    ]


class Onlooker:
    """Reads every job with its tags again and again, and writes down what does not fit together.

    One statement, and so one instant: what the library reads in several may be of several.
    """

    def __init__(self, site):
        if site.on_postgres:
            schema, self._connection = "tidemill.", psycopg.connect(site.url, autocommit=True)
        else:
            path = site.url.removeprefix("sqlite:///")
            schema, self._connection = "tidemill_", sqlite3.connect(path, isolation_level=None)
        self._statement = (
            f"SELECT state, attempt, output, value FROM {schema}jobs"
            f" LEFT JOIN {schema}tags ON job_id = id AND tag = 'attempt'"
        )
        self.halves = []

    def sees_all_ended(self):
        rows = self._connection.execute(self._statement).fetchall()
        self.halves += [row for row in rows if not self._is_whole(*row)]
        return all(state_of(row[0]).terminal for row in rows)

    def end_other_connections(self):
        self._connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def close(self):
        self._connection.close()

    @staticmethod
    def _is_whole(state, attempt, output, tag):
        if state_of(state) is JobState.SUCCEEDED:
            return (bytes(output), tag) == (str(attempt).encode(), str(attempt))
        return (output, tag) == (None, None)


@pytest.fixture
def watched(site):
    """A site with someone who looks at it."""
    yield from looked_at(site)


@pytest.fixture
def watched_postgres(postgres_site):
    yield from looked_at(postgres_site)


def looked_at(site):
    onlooker = Onlooker(site)
    yield site, onlooker
    onlooker.close()
    assert onlooker.halves == []


def keys_are_free(site):
    """Enqueue under every key once more; answer the new jobs, each a job of its own."""
    refs = [
        promised.work.with_options(idempotency_key=f"k{number}").sync.enqueue(0.0)
        for number in range(JOBS)
    ]
    assert not any(ref.deduplicated for ref in refs)
    return [ref.id for ref in refs]


def test_an_end_is_seen_whole_or_not_at_all_while_workers_are_killed(watched):
    site, onlooker = watched
    job_ids = enqueue_keyed()
    for kills in range(1, 4):
        worker = site.start_victim("--concurrency", "4")
        wait_until(
            lambda kills=kills: onlooker.sees_all_ended() or len(site.finished()) >= 6 * kills
        )
        worker.kill()
    site.start_survivor("--concurrency", "4")
    wait_until(onlooker.sees_all_ended)
    more = keys_are_free(site)
    jobs = balanced(site, job_ids + more)
    assert {job.state for job in jobs} == {"succeeded"}


def test_an_end_is_seen_whole_or_not_at_all_while_connections_are_ended(watched_postgres):
    site, onlooker = watched_postgres
    job_ids = enqueue_keyed()
    site.start_survivor("--concurrency", "4")
    for cuts in range(1, 6):
        wait_until(lambda cuts=cuts: onlooker.sees_all_ended() or len(site.finished()) >= 4 * cuts)
        onlooker.end_other_connections()
    wait_until(onlooker.sees_all_ended)
    more = keys_are_free(site)
    jobs = balanced(site, job_ids + more)
    assert {job.state for job in jobs} == {"succeeded"}
