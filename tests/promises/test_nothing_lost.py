"""P1, P4 and P5: nothing is lost or stuck, whatever dies; and what kills is stopped."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from tests.promises import promised

from tidemill.values.outcomes import Verdict


def test_a_claim_whose_answer_was_lost_is_given_back_and_costs_nothing(site):
    job_id = promised.quick.sync.enqueue("k").id
    worker = site.start_worker("--lease", "2s", PROMISE_LOSSY="claim")
    details = site.wait_for(job_id, "succeeded")
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0

    assert details.record.failures == 0
    assert details.record.attempt == 1 + len(details.attempts)
    assert Verdict.RELEASED in [attempt.verdict for attempt in details.attempts]
    assert "which does not hold it" in worker.log.read_text()
    events = [line[0] for line in site.lines()]
    between = events[events.index("lost") : events.index("released")]
    assert between.count("beat") <= 3  # two, and one that may have been under way
    assert 1 <= site.bodies("start")["k"] < details.record.attempt  # one was never heard of


def test_a_job_that_ends_its_process_is_dead_as_poison_and_those_beside_it_succeed(
    site, wait_until
):
    crash = promised.crash.sync.enqueue().id
    others = [promised.steady.sync.enqueue(f"s{n}").id for n in range(promised.STEADY)]
    worker, crashes = site.start_victim(), 0
    while ended_before(crash, worker, site, wait_until):
        worker, crashes = site.start_victim(), crashes + 1
    site.calm.touch()
    wait_until(lambda: site.counts() == {"succeeded": promised.STEADY, "dead": 1})
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0

    record = site.job(crash).record
    assert (record.cause, record.lapses, record.failures) == ("poison", 2, 0)
    assert (crashes, site.bodies("start")["crash"]) == (2, 2)
    for job_id in others:
        record = site.job(job_id).record
        assert (record.failures, record.attempt) == (0, 1 + record.lapses)
        assert record.lapses >= crashes


def ended_before(job_id, worker, site, wait_until):
    """Whether the worker's process ends before the job is dead."""
    wait_until(lambda: worker.process.poll() is not None or site.state(job_id) == "dead")
    assert worker.process.poll() in {None, 1}
    return site.state(job_id) != "dead"


def test_a_killed_worker_loses_nothing_but_time(site, wait_until):
    jobs = [promised.quick.bind(f"q{n}") for n in range(100)]
    jobs += [promised.held_job.bind(f"h{n}") for n in range(40)]
    ids = [ref.id for ref in promised.mill.sync.enqueue_many(jobs)]
    gate = site.gate("gate")
    victim = site.start_victim("--concurrency", "30", PROMISE_GATE=gate)
    wait_until(lambda: in_flight(site, victim) == 30)
    other = site.start_survivor("--concurrency", "30")
    victim.signal(signal.SIGKILL)
    assert victim.ended() == -signal.SIGKILL
    wait_until(lambda: site.counts() == {"succeeded": len(ids)})
    other.signal(signal.SIGTERM)
    assert other.ended() == 0

    ended = site.bodies("end")
    assert ended == Counter({f"q{n}": 1 for n in range(100)} | {f"h{n}": 1 for n in range(40)})
    started = site.bodies("start")
    assert sum(started.values()) == len(ids) + 30
    for job_id in ids:
        record = site.job(job_id).record
        assert (record.failures, record.attempt) == (0, 1 + record.lapses)
    assert site.live_workers() == 0


def in_flight(site, worker):
    held = [line for line in site.lines() if line[1][0] == "h" and line[-1] == str(worker.pid)]
    return len(held)


def test_a_worker_that_is_told_to_end_lets_its_handlers_finish(site, wait_until):
    gate = site.gate("gate")
    worker = site.start_worker(PROMISE_GATE=gate)
    job_id = promised.held_job.sync.enqueue("k").id
    wait_until(lambda: site.wrote("start", "k"))
    worker.signal(signal.SIGTERM)
    worker.wait_for_log("Ending: nothing more is claimed")
    late = promised.quick.sync.enqueue("late").id
    gate.write_bytes(b"")
    assert worker.ended() == 0
    assert (site.state(job_id), site.state(late)) == ("succeeded", "ready")
    assert site.counts()["running"] == 0
    assert (site.job(late).record.attempt, site.live_workers()) == (0, 0)


def test_a_second_signal_hurries_and_costs_the_job_nothing(site, wait_until):
    job_id = promised.long.sync.enqueue().id
    worker = site.start_worker("--grace", "1h")
    wait_until(lambda: site.wrote("start", "long"))
    worker.signal(signal.SIGTERM)
    worker.wait_for_log("Ending: nothing more is claimed")
    assert site.state(job_id) == "running"
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    details = site.job(job_id)
    assert (details.record.state, details.record.failures) == ("ready", 0)
    assert details.attempts[-1].verdict is Verdict.RELEASED
    assert site.wrote("told", "shutdown")
    assert site.live_workers() == 0


def test_a_handler_that_ignores_its_cancellation_does_not_keep_the_process(site, wait_until):
    job_id = promised.stubborn.sync.enqueue().id
    worker = site.start_worker("--grace", "1h")
    wait_until(lambda: site.wrote("start", "stubborn"))
    for says in ("Ending:", "Hurrying:"):  # the claims are over, and so is the grace period
        worker.signal(signal.SIGTERM)
        worker.wait_for_log(says)
    worker.signal(signal.SIGTERM)  # and patience
    assert worker.ended() == 0
    details = site.job(job_id)
    assert (details.record.state, details.record.failures) == ("ready", 0)
    assert details.attempts[-1].verdict is Verdict.RELEASED
    assert site.live_workers() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_by_a_handler_leaves_its_worker_as_it_is(site, wait_until):
    worker = site.start_worker()
    job_ids = [promised.fork.sync.enqueue(f"k{number}").id for number in range(5)]
    wait_until(lambda: site.counts() == {"succeeded": 10})
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    for job_id in job_ids:
        details = site.job(job_id)
        assert (details.output, details.record.attempt) == (b"0", 1)
    assert site.bodies("child") == site.bodies("end") == {f"k{number}": 1 for number in range(5)}
    assert site.live_workers() == 0
