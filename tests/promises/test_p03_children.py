"""P3: the jobs that an attempt leaves are stored with its success, once, or not at all."""

from __future__ import annotations

import signal

import psycopg
import pytest
from tests.promises import promised
from tests.promises.books import assert_one_child_each, balanced, children
from tests.waiting import wait_until

from tidemill.store.notes import ReadLog
from tidemill.values.bounds import DEFAULT_BOUNDS

JOBS = 40


def enqueue_parents(seconds=0.05):
    call = promised.parent.bind(seconds)
    return [ref.id for ref in promised.mill.sync.enqueue_many([call] * JOBS)]


def settled_books(site, job_ids):
    """The parents, once everything has ended and the books of all jobs balance."""
    wait_until(site.all_ended)
    jobs = balanced(site, job_ids + children(site))
    parents = jobs[: len(job_ids)]
    assert {job.state for job in jobs} == {"succeeded"}
    assert_one_child_each(site, parents)
    for job in parents:
        assert_said_right(site, job)
    return parents


def assert_said_right(site, job):
    """The recorded attempt has all that it said; of others there is what they said first."""
    progress = job.record.progress
    assert progress is not None
    assert (progress.attempt, progress.fraction) == (job.attempt, 1.0)
    said = {}
    asked = ReadLog(job.id, limit=DEFAULT_BOUNDS.page_size)
    for line in site.store.perform_sync(asked).lines:
        assert line.values == {"attempt": line.attempt}
        said.setdefault(line.attempt, []).append((line.number, line.message))
    everything = [(1, "begun"), (2, "ended")]
    assert said.pop(job.attempt) == everything
    assert all(lines == everything[: len(lines)] for lines in said.values())
    assert max(said, default=0) < job.attempt


def test_a_success_leaves_one_child_while_workers_are_killed(site):
    job_ids = enqueue_parents()
    for kills in range(1, 4):
        worker = site.start_victim("--concurrency", "4")
        wait_until(lambda kills=kills: site.all_ended() or len(site.finished()) >= 8 * kills)
        worker.kill()
    site.start_survivor("--concurrency", "4")
    settled_books(site, job_ids)


def test_a_success_leaves_one_child_while_answers_are_lost(site):
    job_ids = enqueue_parents(0.01)
    site.start_worker("--concurrency", "4", "--lease", "3s", PROMISE_LOSSY="reports")
    settled_books(site, job_ids)
    assert site.bodies("lost")["report"]


def test_a_success_leaves_one_child_while_connections_are_ended(postgres_site):
    site = postgres_site
    job_ids = enqueue_parents()
    site.start_survivor("--concurrency", "4")
    with psycopg.connect(site.url, autocommit=True) as connection:
        for cuts in range(1, 6):
            wait_until(lambda cuts=cuts: site.all_ended() or len(site.finished()) >= 6 * cuts)
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    settled_books(site, job_ids)


@pytest.mark.parametrize("concurrency", ["1", "20"])
def test_a_worker_that_stood_still_past_its_lease_leaves_nothing_of_its_attempts(site, concurrency):
    job_ids = enqueue_parents(0.3)
    sleeper = site.start_victim("--concurrency", concurrency)
    wait_until(lambda: site.begun_by(sleeper))
    sleeper.freeze()
    site.start_survivor("--concurrency", "20")
    wait_until(site.all_ended)
    sleeper.signal(signal.SIGCONT)
    settled_books(site, job_ids)
