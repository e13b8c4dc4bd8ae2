"""P5: an ended job stays as it ended, whatever the dead report; only an operator moves it on."""

from __future__ import annotations

import signal

from tests.promises import promised
from tests.promises.books import balanced
from tests.waiting import wait_until

from tidemill.store.monitor import ListJobs
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState

JOBS = 4


def enqueue_judged():
    calls = [promised.judged.bind() for _ in range(JOBS)]
    return [ref.id for ref in promised.mill.sync.enqueue_many(calls)]


def ends(site):
    """How every ended job stands."""
    page = site.store.perform_sync(ListJobs())
    return {job.id: job for job in page.jobs if job.state.terminal}


def test_a_success_from_the_dead_leaves_a_dead_job_dead_until_an_operator_requeues_it(site):
    gate = site.gate("gate")
    job_ids = enqueue_judged()
    sleeper = site.start_victim(PROMISE_GATE=gate)
    wait_until(lambda: len(site.begun_by(sleeper)) == JOBS)
    sleeper.freeze()
    other = site.start_survivor(PROMISE_ENDING="discard")
    wait_until(lambda: len(ends(site)) == JOBS)
    before = ends(site)
    assert {(job.state, job.cause) for job in before.values()} == {("dead", "discarded")}

    sleeper.signal(signal.SIGCONT)
    site.let_through(gate, JOBS)
    wait_until(lambda: len(site.finished()) == JOBS)
    sleeper.wait_for_log("lost its lease")
    assert ends(site) == before
    other.stop()
    assert other.ended() == 0

    jobs = promised.mill.jobs.sync
    requeued = [jobs.requeue(job_id, actor="ada").effect for job_id in job_ids]
    assert set(requeued) == {"done"}
    site.let_through(gate, JOBS)
    details = [site.wait_for(job_id, "succeeded") for job_id in job_ids]
    assert {job.attempt for job in details} == {3}

    refused = [jobs.requeue(job_id, actor="ada").effect for job_id in job_ids]
    assert set(refused) == {"unchanged"}
    assert [site.job(job_id) for job_id in job_ids] == details
    for job in balanced(site, job_ids):
        verdicts = [each.verdict for each in job.attempts if not each.stale]
        assert verdicts == [Verdict.LAPSED, Verdict.DISCARDED]


def test_no_look_at_a_job_ever_shows_it_further_back_than_the_look_before(site):
    job_ids = site.enqueue_work(40, 0.05)
    seen = {}
    backwards = []

    def look():
        for job in site.store.perform_sync(ListJobs(limit=200)).jobs:
            before = seen.get(job.id)
            if before is not None and is_back(before, job):
                backwards.append((before, job))
            seen[job.id] = job
        return all(job.state.terminal for job in seen.values())

    for kills in range(1, 4):
        worker = site.start_victim("--concurrency", "4")
        wait_until(lambda kills=kills: look() or len(site.finished()) >= 8 * kills)
        worker.kill()
    site.start_survivor("--concurrency", "4")
    wait_until(look)
    balanced(site, job_ids)
    assert backwards == []


def is_back(before, after):
    """Whether the job lost an attempt, left its end, or runs an attempt that was over."""
    if before.state.terminal:
        return after != before
    if after.attempt < before.attempt or after.lapses < before.lapses:
        return True
    over = before.state is not JobState.RUNNING and before.attempt > 0
    return over and after.state is JobState.RUNNING and after.attempt == before.attempt
