"""P4: however many claim at once, each attempt has one holder."""

from __future__ import annotations

from tests.promises import promised
from tests.promises.books import attempts_in, balanced, faults_of
from tests.waiting import wait_until

JOBS = 400
PROCESSES = 4


def test_processes_that_claim_at_once_share_the_jobs_and_run_no_attempt_twice(site):
    gate = site.gate("gate")
    opened = [promised.held_job.sync.enqueue(f"h{number}").id for number in range(PROCESSES)]
    for _ in range(PROCESSES):
        site.start_worker("--concurrency", "1", PROMISE_GATE=gate)
    wait_until(lambda: len(site.bodies("start")) == PROCESSES)  # each holds its only slot
    job_ids = site.enqueue_work(JOBS, 0.0)
    site.let_through(gate, PROCESSES)

    wait_until(site.all_ended)
    by = {line[-1] for line in site.lines() if line[0] == "begin"}
    assert len(by) > 1
    assert_each_attempt_began_once(site)
    site.stop()
    jobs = site.jobs(job_ids)
    assert not [*faults_of(site, jobs)]
    assert {job.state for job in jobs} == {"succeeded"}
    assert {site.state(job_id) for job_id in opened} == {"succeeded"}


def test_a_claim_is_exclusive_among_workers_that_come_and_go(site):
    job_ids = site.enqueue_work(120, 0.01)
    for _ in range(3):
        site.start_worker("--concurrency", "6")
    wait_until(lambda: len(site.finished()) >= 30)
    site.stop()
    for _ in range(2):
        site.start_worker("--concurrency", "6")
    jobs = balanced(site, job_ids)
    assert_each_attempt_began_once(site)
    assert {job.state for job in jobs} == {"succeeded"}


def assert_each_attempt_began_once(site):
    """Whichever processes claimed, no two of them ever ran the same attempt."""
    for job_id, begun in attempts_in(site, "begin").items():
        assert len(set(begun)) == len(begun), f"{job_id} began as {begun}"
