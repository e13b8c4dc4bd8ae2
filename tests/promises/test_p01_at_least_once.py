"""P1: every job that was enqueued ends, whatever dies, stalls or goes away meanwhile."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest
from tests.promises import promised
from tests.promises.books import balanced, ends_of
from tests.promises.site import site_on
from tests.waiting import wait_until

from tidemill.values.outcomes import Verdict

A_WHILE = 0.15


def test_workers_that_are_killed_one_after_another_lose_no_job(site):
    calls = [promised.work.bind(0.02), promised.work.bind(A_WHILE), promised.linger.bind()] * 20
    job_ids = [ref.id for ref in promised.mill.sync.enqueue_many(calls)]
    lingering = set(map(str, job_ids[2::3]))
    for slots in (5, 10, 15):
        worker = site.start_victim("--concurrency", str(slots))
        wait_until(lambda worker=worker: site.begun_by(worker) & lingering)
        worker.kill()
    site.start_survivor()
    site.calm.touch()
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}
    assert any(job.record.lapses for job in jobs)


def test_a_worker_that_stood_still_past_its_lease_goes_on_and_spoils_nothing(site):
    job_ids = [ref.id for ref in promised.mill.sync.enqueue_many([promised.linger.bind()] * 5)]
    sleeper = site.start_victim()
    wait_until(lambda: len(site.begun_by(sleeper)) == len(job_ids))
    sleeper.freeze()
    site.calm.touch()
    job_ids += site.enqueue_work(20, A_WHILE)
    other = site.start_survivor()
    wait_until(site.all_ended)
    other.stop()
    assert other.ended() == 0
    sleeper.signal(signal.SIGCONT)
    more = site.enqueue_work(10, A_WHILE)
    wait_until(lambda: site.begun_by(sleeper) >= set(map(str, more)))
    jobs = balanced(site, job_ids + more)
    assert {job.state for job in jobs} == {"succeeded"}
    assert all(job.record.lapses for job in jobs[:5])


@pytest.mark.parametrize("fault", ["shut_down_at_once", "kill"])
def test_a_server_that_dies_and_comes_back_loses_no_job_and_no_worker(own_server, tmp_path, fault):
    with site_on(own_server.url, tmp_path) as site:
        job_ids = site.enqueue_work(60, A_WHILE)
        for _ in range(2):
            site.start_victim("--concurrency", "4")
        for _ in range(2):
            before = len(site.lines())
            wait_until(lambda before=before: len(site.lines()) > before + 10 or site.all_ended())
            getattr(own_server, fault)()
            own_server.start()
            job_ids += site.enqueue_work(20, A_WHILE)
        jobs = balanced(site, job_ids)
        assert {job.state for job in jobs} == {"succeeded"}


def test_a_handler_that_blocks_the_loop_for_two_leases_costs_nobody_a_job(site):
    blocking = promised.deaf.sync.enqueue(2.0).id
    worker = site.start_victim()
    wait_until(lambda: site.begun_by(worker))
    job_ids = [blocking, *site.enqueue_work(10, 0.0)]
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}


def test_a_write_transaction_of_the_application_longer_than_a_lease_costs_no_job(sqlite_site):
    site = sqlite_site
    job_ids = site.enqueue_work(30, A_WHILE)
    worker = site.start_victim("--concurrency", "5")
    wait_until(lambda: len(site.begun_by(worker)) >= 10)
    path = site.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as application:
        application.execute("BEGIN IMMEDIATE")
        worker.wait_for_log("lost its lease")  # nobody could beat for a whole lease
        application.execute("COMMIT")
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}
    assert {end.verdict for job in jobs for end in ends_of(job)} <= {
        Verdict.LAPSED, Verdict.RELEASED
    }  # fmt: skip
