"""P2 and P3: whatever a late report says, one success is recorded, and it is whole."""

from __future__ import annotations

import json
import signal
import subprocess
from datetime import timedelta
from uuid import UUID

from tests.promises import promised

from tidemill.shell.heart import introduction
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.store.operators import Requeue
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import ActionId, Attempt, JobId, WorkerId
from tidemill.values.jobs import Holder, NewJob
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.tags import Tag


def test_a_report_after_the_lease_is_rejected_and_recorded_with_both_pairs(site):
    job_id = promised.held_job.sync.enqueue("k").id
    dead = site.start("reporter.py", "1", stdout=subprocess.PIPE)
    claim = json.loads(dead.process.stdout.readline())
    dead.wait_frozen()
    assert (claim["job"], claim["attempt"]) == (str(job_id), 1)

    living = site.start_survivor()
    before = site.wait_for(job_id, "succeeded")
    dead.signal(signal.SIGCONT)
    said = json.loads(dead.process.stdout.readline())
    assert dead.ended() == 0
    assert said == {"live": False, "answer": "stale"}

    after = site.job(job_id)
    holder = Holder(before.record.worker, Attempt(2), JobState.SUCCEEDED)
    (stale,) = [attempt for attempt in after.attempts if attempt.stale]
    assert (stale.worker, stale.attempt, stale.holder) == (UUID(claim["worker"]), 1, holder)
    assert stale.worker != holder.worker

    log = dead.log.read_text()
    assert f"from worker {claim['worker']}, attempt 1" in log
    assert f"held by worker {holder.worker}, attempt 2" in log

    pid = str(living.pid)
    assert after.record == before.record
    assert (after.output, after.tags) == (pid.encode(), frozenset({Tag("by", pid)}))
    assert (site.bodies("start"), site.bodies("end")) == ({"k": 1}, {"k": 1})


def test_a_worker_that_slept_past_its_lease_leaves_no_trace_of_its_end(site, wait_until):
    gate = site.gate("gate")
    sleeper = site.start_victim(PROMISE_GATE=gate)
    job_id = promised.held_job.sync.enqueue("k").id
    wait_until(lambda: site.wrote("start", "k", sleeper))
    sleeper.freeze()

    living = site.start_survivor()
    before = site.wait_for(job_id, "succeeded")
    sleeper.signal(signal.SIGCONT)
    gate.write_bytes(b"")
    wait_until(lambda: site.wrote("end", "k", sleeper))
    sleeper.signal(signal.SIGTERM)
    assert sleeper.ended() == 0

    assert min(site.bodies("start")["k"], site.bodies("end")["k"]) >= 2
    after = site.job(job_id)
    pid = str(living.pid)
    assert after.record == before.record
    assert (after.output, after.tags) == (pid.encode(), frozenset({Tag("by", pid)}))
    assert {each.verdict for each in after.attempts if not each.stale} == {Verdict.LAPSED}
    assert (after.record.failures, after.record.attempt) == (0, 1 + after.record.lapses)
    assert "lost its lease" in sleeper.log.read_text()


def test_a_worker_that_holds_its_job_again_cannot_report_for_the_time_before(site):
    worker, job_id = WorkerId(new_id()), JobId(new_id())
    minute, names = timedelta(minutes=1), frozenset({"held"})
    perform = site.store.perform_sync
    perform(Register(info=introduction(("default",), names, 1)(worker), lease=minute))
    perform(Enqueue((NewJob(id=job_id, wire_name="held", retry=Retry.never()),)))
    request = ClaimRequest(shares=(Share("default", 1),), limit=1, wire_names=names)

    def claim():
        (job,) = perform(Exchange(worker=worker, claim=request)).claimed
        return job.attempt

    def report(attempt, verdict, **fields):
        outcome = Outcome(job_id=job_id, attempt=attempt, verdict=verdict, **fields)
        return perform(Exchange(worker=worker, outcomes=(outcome,))).reported[0]

    first = claim()
    error = ErrorInfo("ValueError", "no")
    assert report(first, Verdict.FAILED, error=error).state is JobState.DEAD
    perform(Requeue(job_ids=(job_id,), actor="ada", action=ActionId(new_id())))
    second = claim()
    assert (first, second) == (1, 2)

    late = report(first, Verdict.SUCCEEDED, output=b'"old"', tags=frozenset({Tag("old")}))
    holder = Holder(worker, second, JobState.RUNNING)
    assert (late.answer, late.holder) == (Answer.STALE, holder)
    assert report(second, Verdict.SUCCEEDED, output=b'"new"').answer is Answer.APPLIED

    details = site.job(job_id)
    assert (details.output, details.tags) == (b'"new"', frozenset())
    (stale,) = [attempt for attempt in details.attempts if attempt.stale]
    assert (stale.worker, stale.attempt, stale.holder) == (worker, first, holder)
