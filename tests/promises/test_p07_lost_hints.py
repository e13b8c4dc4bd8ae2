"""P7: polling is the truth: hints lost, doubled or given for nothing change latency alone."""

from __future__ import annotations

import psycopg
from tests.promises import promised
from tests.promises.books import balanced
from tests.waiting import wait_until


def enqueue_one_by_one(count):
    return [promised.work.sync.enqueue(0.01).id for _ in range(count)]


def test_a_worker_that_hears_no_hint_finds_every_job(site):
    worker = site.start_worker("--poll-interval", "200ms", PROMISE_HINTS=0)
    worker.wait_for_log("Registered")
    job_ids = []
    for _ in range(4):  # each time it is idle again
        job_ids += enqueue_one_by_one(5)
        wait_until(site.all_ended)
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}


def test_a_worker_that_hears_every_hint_many_times_runs_no_attempt_twice(site):
    site.start_worker("--concurrency", "4", PROMISE_HINTS=50)
    site.start_worker("--concurrency", "4", PROMISE_HINTS=50)
    jobs = balanced(site, enqueue_one_by_one(60))
    assert {job.state for job in jobs} == {"succeeded"}


def test_a_worker_whose_listening_is_cut_again_and_again_finds_every_job(postgres_site):
    site = postgres_site
    worker = site.start_worker("--poll-interval", "200ms")
    worker.wait_for_log("Registered")
    job_ids, cut = [], 0
    with psycopg.connect(site.url, autocommit=True) as connection:
        for _ in range(4):
            cut += connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            ).fetchone()[0]
            job_ids += enqueue_one_by_one(5)
            wait_until(site.all_ended)
    jobs = balanced(site, job_ids)
    assert cut
    assert {job.state for job in jobs} == {"succeeded"}
