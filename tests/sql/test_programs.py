"""Programs without a database: what they ask, step by step, and what they answer."""

from datetime import UTC, datetime, timedelta

import pytest

from tidemill.core.digest import content_digest
from tidemill.errors import BoundExceeded, JobIdConflict, StoreUnavailable
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.program import Batch, FollowUp, Statement
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import GLANCES, READS, WRITES, glance_for, program_for, writes
from tidemill.store.contract import Operation
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain
from tidemill.values.bounds import Bounds
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, Outcome, Verdict

DIALECT = SqliteDialect()
ENV = Env(DIALECT, Bounds())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_ROW = [{"now": DIALECT.encode(NOW)}]
LEASE = timedelta(seconds=60)
WORKER = uuid7(9, 9)
LIVE = [{
    "lease_expires_at": DIALECT.encode(NOW + LEASE), "lapsed_at": None, "deregistered_at": None,
}]  # fmt: skip


def drive(program, answers):
    """Run a program over canned answers by statement name; answer its steps and its value."""
    steps, rows = [], None
    try:
        while True:
            step = program.send(rows)
            steps.append(step)
            rows = _rows(step, answers, steps)
    except StopIteration as stop:
        return steps, stop.value


def _rows(step, answers, steps):
    if isinstance(step, FollowUp):
        inner, value = drive(step.make(), answers)
        steps += inner
        return [{"value": value}]
    if isinstance(step, Batch):
        return answers.get(step.name, [{"count": len(step.rows)}])
    return answers.get(getattr(step, "name", "commit"), [])


def names(steps):
    return ["FOLLOW-UP" if isinstance(step, FollowUp) else step.name for step in steps]


def ready_row(n, **more):
    return {
        "id": uuid7(n, n).bytes, "wire_name": "t", "queue": "q", "priority": 0, "due_at": 0,
        "attempt": 0, "lapses": 0, "lapses_base": 0, "retry": None, "timeout": None,
        "not_after": None, "tenant": "", "created_at": 0, "trace_context": None, "payload": b"{}",
        **more,
    }  # fmt: skip


def test_every_operation_has_exactly_one_program():
    names = {kind.__name__ for kind in (*WRITES, *READS)}
    assert names == {kind.__name__ for kind in Operation.__subclasses__()}
    assert not set(WRITES) & set(READS)
    assert set(GLANCES) <= set(WRITES)
    assert writes(Enqueue(()))
    assert glance_for(Enqueue(()), ENV) is None


def test_a_refused_job_asks_nothing_of_the_database():
    big = NewJob(id=uuid7(1, 1), wire_name="t", payload=b"x" * 70_000)
    with pytest.raises(BoundExceeded):
        next(program_for(Enqueue((big,)), ENV))


def test_a_plain_enqueue_is_the_clock_one_look_and_one_batch():
    jobs = tuple(NewJob(id=uuid7(n, n), wire_name="t") for n in range(1, 4))
    steps, answers = drive(program_for(Enqueue(jobs), ENV), {"clock": NOW_ROW})
    assert names(steps) == ["clock", "stored_jobs", "insert_job"]
    assert [answer.job_id for answer in answers] == [job.id for job in jobs]


def test_keys_are_looked_for_in_sorted_order_once_for_each_tenant():
    jobs = tuple(
        NewJob(id=uuid7(n, n), wire_name="t", idempotency_key=key, tenant=tenant)
        for n, (tenant, key) in enumerate([(None, "b"), ("z", "c"), (None, "a")], start=1)
    )
    steps, _ = drive(program_for(Enqueue(jobs), ENV), {"clock": NOW_ROW})
    asked = [step.params for step in steps if step.name == "key_holders"]
    assert asked == [{"tenant": "", "keys": ("a", "b")}, {"tenant": "z", "keys": ("c",)}]


def test_a_batch_judges_each_job_by_those_before_it():
    one = NewJob(id=uuid7(1, 1), wire_name="t", idempotency_key="k")
    two = NewJob(id=uuid7(2, 2), wire_name="t", idempotency_key="k")
    steps, answers = drive(program_for(Enqueue((one, two, one)), ENV), {"clock": NOW_ROW})
    assert [(each.job_id, each.deduplicated, each.repeated) for each in answers] == [
        (one.id, False, False), (one.id, True, False), (one.id, False, True),
    ]  # fmt: skip
    assert len(steps[-1].rows) == 1


def test_a_known_id_is_repeated_or_refused_by_its_digest():
    job = NewJob(id=uuid7(1, 1), wire_name="t")
    stored = {"id": job.id.bytes, "state": 3, "digest": content_digest(job)}
    answers = {"clock": NOW_ROW, "stored_jobs": [stored]}
    steps, (answer,) = drive(program_for(Enqueue((job,)), ENV), answers)
    assert (answer.repeated, names(steps)) == (True, ["clock", "stored_jobs"])
    stored["digest"] = b"other"
    with pytest.raises(JobIdConflict, match=str(job.id)):
        drive(program_for(Enqueue((job,)), ENV), answers)


def plain_reports(count):
    return tuple(
        Outcome(job_id=uuid7(n, n), attempt=1, verdict=Verdict.SUCCEEDED) for n in range(count)
    )


def test_a_batch_of_plain_successes_costs_one_statement():
    reports = plain_reports(300)
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE,
        "finish_plain": [{"id": report.job_id.bytes} for report in reports],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=reports), ENV), answers)
    assert names(steps) == ["clock", "worker_lease", "finish_plain", "cancel_requests"]
    assert {each.answer for each in answer.reported} == {Answer.APPLIED}


def test_what_the_fast_statement_missed_is_judged_from_its_row():
    reports = plain_reports(2)
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE, "finish_plain": [{"id": reports[0].job_id.bytes}],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=reports), ENV), answers)
    assert names(steps)[2:] == ["finish_plain", "reported_jobs", "cancel_requests"]
    assert [each.answer for each in answer.reported] == [Answer.APPLIED, Answer.GONE]


def test_stale_records_follow_in_a_transaction_of_their_own():
    (report,) = plain_reports(1)
    row = {
        **ready_row(0), "id": report.job_id.bytes, "state": 3, "worker_id": uuid7(8, 8).bytes,
        "attempt": 2, "failures": 0, "failures_base": 0, "cancel_requested": None, "started_at": 0,
    }  # fmt: skip
    answers = {"clock": NOW_ROW, "worker_lease": LIVE, "reported_jobs": [row]}
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=(report,)), ENV), answers)
    assert names(steps)[-5:] == [
        "recorded_verdict", "cancel_requests", "FOLLOW-UP", "insert_attempt", "prune_attempts",
    ]  # fmt: skip
    assert answer.reported[0].holder.attempt == 2


def test_a_claim_of_jobs_that_never_run_ends_after_a_bounded_number():
    request = ClaimRequest(shares=(Share("q", 500),), limit=500, wire_names=frozenset({"other"}))
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE, "next_due": [{"due_at": None}],
        "ready_jobs": [ready_row(n) for n in range(500)],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    assert names(steps).count("hold_jobs") == 2
    assert (answer.claimed, answer.next_due) == ((), timedelta(0))


def test_a_job_whose_lapses_exceed_its_limit_is_buried_at_the_claim():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE, "next_due": [{"due_at": None}],
        "ready_jobs": [ready_row(1, lapses=11)],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    (buried,) = [step for step in steps if getattr(step, "name", "") == "bury_jobs"]
    assert buried.params["cause"] == "poison"
    assert answer.claimed == ()


def test_a_dead_lease_claims_nothing_and_renews_nothing():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    steps, answer = drive(
        program_for(Exchange(worker=WORKER, claim=request), ENV), {"clock": NOW_ROW}
    )
    assert (names(steps), answer.live) == (["clock", "worker_lease", "cancel_requests"], False)
    expired = [{**LIVE[0], "lease_expires_at": DIALECT.encode(NOW)}]
    beat = program_for(Beat(worker=WORKER, lease=LEASE), ENV)
    steps, reply = drive(beat, {"clock": NOW_ROW, "worker_lease": expired})
    assert (names(steps)[-1], reply.live) == ("note_lapse", False)


def test_upkeep_is_three_transactions_and_two_of_them_follow_the_first():
    steps, _ = drive(program_for(Maintain(lease=LEASE), ENV), {"clock": NOW_ROW})
    assert names(steps).count("FOLLOW-UP") == 2
    assert names(steps).count("clock") == 3
    assert names(steps).index("lapsed_jobs") < names(steps).index("FOLLOW-UP")


@pytest.mark.parametrize("ago", [timedelta(0), LEASE, LEASE * 2])
def test_a_sweep_asks_for_leases_no_longer_than_the_time_since_a_blockage(ago):
    answers = {"clock": NOW_ROW, "unwritable_until": [{"value": DIALECT.encode(NOW - ago)}]}
    steps, _ = drive(program_for(Maintain(lease=LEASE), ENV), answers)
    asked = {step.name: step.params for step in steps if isinstance(step, Statement)}
    assert asked["lapsed_jobs"]["writable_for"] == ago
    assert asked["lapsed_workers"]["writable_for"] == ago
    assert asked["unwritable_until"]["lease"] == LEASE


def test_where_nothing_was_ever_blocked_every_lease_is_asked_for():
    steps, _ = drive(program_for(Maintain(lease=LEASE), ENV), {"clock": NOW_ROW})
    (asked,) = [step for step in steps if getattr(step, "name", "") == "lapsed_jobs"]
    assert asked.params["writable_for"] > timedelta(days=36_525)


def running_row(n, **more):
    return {
        "id": uuid7(n, n).bytes, "state": 3, "worker_id": uuid7(8, 8).bytes, "attempt": 1,
        "retry": None, "failures": 0, "failures_base": 0, "lapses": 0, "lapses_base": 0,
        "cancel_requested": None, "started_at": 0, "due_at": 0, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"worker_id": b"short"}, {"state": 99}, {"worker_id": None}, {"lapses": "many"}, {"id": 7}],
    ids=["short worker", "state", "no worker", "lapses", "id"],
)
def test_a_row_that_cannot_be_read_does_not_keep_the_sweep_from_the_others(wrong, caplog):
    rows = [running_row(1), running_row(2, **wrong), running_row(3)]
    steps, answer = drive(
        program_for(Maintain(lease=LEASE), ENV), {"clock": NOW_ROW, "lapsed_jobs": rows}
    )
    assert [lapsed.job_id for lapsed in answer.lapsed] == [uuid7(1, 1), uuid7(3, 3)]
    (ended,) = [step for step in steps if getattr(step, "name", "") == "end_attempt"]
    assert [row["id"] for row in ended.rows] == [uuid7(1, 1), uuid7(3, 3)]
    assert "cannot read running job" in caplog.text


def test_what_a_worker_wrote_that_no_longer_reads_stands_for_no_name():
    answers = {
        "clock": NOW_ROW, "known_names": [{"wire_names": "{"}, {"wire_names": '["t"]'}],
        "held_jobs": [],
    }  # fmt: skip
    steps, answer = drive(glance_for(Maintain(lease=LEASE), ENV), answers)
    assert answer is not None
    assert [step.params["names"] for step in steps if step.name == "held_jobs"] == [("t",)]


def test_an_attempt_that_moved_on_after_it_was_read_is_not_ended():
    answers = {
        "clock": NOW_ROW, "lapsed_jobs": [running_row(1), running_row(2)],
        "end_attempt": [{"count": 1}],
    }  # fmt: skip
    with pytest.raises(StoreUnavailable, match="Of 2 attempts judged, 1 had moved on"):
        drive(program_for(Maintain(lease=LEASE), ENV), answers)


def test_the_end_of_an_attempt_names_its_holder_and_its_number():
    rows = [running_row(1, attempt=7)]
    steps, _ = drive(
        program_for(Maintain(lease=LEASE), ENV), {"clock": NOW_ROW, "lapsed_jobs": rows}
    )
    (ended,) = [step for step in steps if getattr(step, "name", "") == "end_attempt"]
    assert [(row["holder"], row["attempt"]) for row in ended.rows] == [(uuid7(8, 8), 7)]


def test_nothing_is_asked_of_a_queue_that_is_paused():
    request = ClaimRequest(shares=(Share("a", 2), Share("b", 2)), limit=4, wire_names=None)
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE, "paused_queues_of": [{"name": "a"}],
        "next_due": [{"due_at": None}],
    }  # fmt: skip
    for program in (program_for, glance_for):
        steps, _ = drive(program(Exchange(worker=WORKER, claim=request), ENV), answers)
        asked = {step.params["queue"] for step in steps if "queue" in step.params}
        assert asked == {"b"}


def test_a_claim_reads_no_more_rows_than_it_may_set_aside():
    request = ClaimRequest(shares=(Share("q", 5_000),), limit=5_000, wire_names=frozenset())
    answers = {
        "clock": NOW_ROW, "worker_lease": LIVE, "next_due": [{"due_at": None}],
        "ready_jobs": [ready_row(n) for n in range(600)],
    }  # fmt: skip
    steps, _ = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    assert [step.params["limit"] for step in steps if step.name == "ready_jobs"] == [1_000]


def test_glances_only_read():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    for operation in (Exchange(worker=WORKER, claim=request), Maintain(lease=LEASE)):
        answers = {"clock": NOW_ROW, "worker_lease": LIVE, "next_due": [{"due_at": None}]}
        steps, answer = drive(glance_for(operation, ENV), answers)
        assert answer is not None
        assert not any(isinstance(step, Batch) for step in steps)
        assert all(isinstance(step, Statement) for step in steps)


@pytest.mark.parametrize(
    "found",
    [{"any_ready": [{"found": 1}]}, {"next_due": [{"due_at": DIALECT.encode(NOW)}]}],
)
def test_a_glance_that_finds_work_leaves_it_to_the_claim(found):
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    answers = {"clock": NOW_ROW, "worker_lease": LIVE, "next_due": [{"due_at": None}], **found}
    assert drive(glance_for(Exchange(worker=WORKER, claim=request), ENV), answers)[1] is None


@pytest.mark.parametrize(
    "name", ["lapsed_jobs", "lapsed_workers", "expired_jobs", "held_jobs"]
)  # fmt: skip
def test_a_glance_that_finds_upkeep_leaves_it_to_the_sweep(name):
    answers = {"clock": NOW_ROW, "known_names": [{"wire_names": '["t"]'}], name: [{"id": b"x"}]}
    assert drive(glance_for(Maintain(lease=LEASE), ENV), answers)[1] is None
