"""P14: jobs that end their process stop by themselves, and those beside them do not pay for it."""

from __future__ import annotations

import signal

from tests.promises import promised
from tests.promises.books import balanced
from tests.waiting import wait_until

WAYS = ("exit", "kill", "fault")
CODES = {3, -signal.SIGKILL, -signal.SIGSEGV}


def test_whichever_way_a_job_ends_its_process_it_is_dead_as_poison_and_its_company_succeeds(site):
    guilty = [promised.deadly.sync.enqueue(how).id for how in WAYS]
    innocent = [promised.linger.sync.enqueue().id for _ in range(5)]
    worker = site.start_victim()
    while ends_before_all_are_dead(site, worker, guilty):
        worker = site.start_victim()
    site.calm.touch()
    jobs = {job.id: job for job in balanced(site, guilty + innocent)}
    for job_id in guilty:
        record = jobs[job_id].record
        assert (record.state, record.cause, record.failures) == ("dead", "poison", 0)
        assert record.lapses == record.attempt == 2
    for job_id in innocent:
        record = jobs[job_id].record
        assert (record.state, record.failures) == ("succeeded", 0)
        assert record.attempt == 1 + record.lapses


def ends_before_all_are_dead(site, worker, guilty):
    """Whether the worker's process ends first; then it was one of the guilty."""
    wait_until(lambda: not worker.alive or {site.state(each) for each in guilty} == {"dead"})
    if worker.alive:
        return False
    worker.doomed = True
    assert worker.ended() in CODES, worker.log.read_text()
    return {site.state(each) for each in guilty} != {"dead"}
