"""P6: the store's clock decides; a node whose clocks are wrong costs nothing but latency."""

from __future__ import annotations

from datetime import timedelta

import psycopg
from tests.promises.books import balanced
from tests.promises.site import LONG
from tests.waiting import wait_until

DAY, HOUR = 86_400, 3_600
MOMENT = timedelta(seconds=1)


def set_clock(clock, seconds):
    """Whole, since others read it at any moment."""
    draft = clock.with_suffix(".draft")
    draft.write_text(str(seconds))
    draft.replace(clock)


def start_wrong(site, name, seconds, *options):
    clock = site.root / name
    set_clock(clock, seconds)
    return site.start("wrong_clock.py", *options, PROMISE_CLOCK=clock)


def test_workers_a_day_ahead_and_a_day_behind_change_no_instant_of_a_job_or_a_lease(postgres_site):
    site = postgres_site
    with psycopg.connect(site.url, autocommit=True) as connection:
        (began,) = connection.execute("SELECT clock_timestamp()").fetchone()
        options = ("--concurrency", "3")
        workers = [
            start_wrong(site, "ahead", DAY, *options),
            start_wrong(site, "behind", -DAY, *options),
            site.start_worker(*options),
        ]
        for worker in workers:
            worker.wait_for_log("Registered")
        late = site.enqueue_work(6, delay=MOMENT)
        job_ids = site.enqueue_work(40) + late
        jobs = balanced(site, job_ids)
        (ended,) = connection.execute("SELECT clock_timestamp()").fetchone()
        leases = connection.execute(
            "SELECT started_at, lease_expires_at - lease FROM tidemill.workers"
        ).fetchall()
    assert len(leases) >= len(workers)
    for started, renewed in leases:
        assert began <= started <= renewed <= ended
    for job in jobs:
        record = job.record
        assert job.state == "succeeded"
        assert began <= record.created_at <= record.started_at <= record.finished_at <= ended
        assert record.due_at <= record.started_at
    for job in site.jobs(late):
        assert job.due_at == job.record.created_at + MOMENT


def test_the_jobs_of_a_worker_that_dies_are_recovered_by_one_whose_clock_is_behind(postgres_site):
    site = postgres_site
    job_ids = site.enqueue_work(12, seconds=0.3)
    victim = site.start_victim("--concurrency", "4")
    wait_until(lambda: len(site.begun_by(victim)) >= 4)
    victim.kill()
    start_wrong(site, "behind", -DAY, "--lease", LONG)
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}
    assert any(job.record.lapses for job in jobs)


def test_a_host_whose_clock_is_set_forth_and_back_loses_no_job(sqlite_site):
    site = sqlite_site
    clock = site.root / "clock"
    later = site.enqueue_work(5, delay=timedelta(seconds=HOUR / 2))
    job_ids = site.enqueue_work(30, seconds=0.1)
    worker = start_wrong(site, "clock", 0, "--lease", "2s", "--concurrency", "4")
    wait_until(lambda: len(site.begun_by(worker)) >= 8)
    set_clock(clock, HOUR)
    wait_until(lambda: site.begun_by(worker) >= set(map(str, job_ids + later)))
    more = site.enqueue_work(10)
    set_clock(clock, 0)
    jobs = balanced(site, job_ids + later + more)
    assert {job.state for job in jobs} == {"succeeded"}
