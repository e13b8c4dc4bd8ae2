"""Programs without a database: what they ask, step by step, and what they answer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.core.digest import content_digest
from tidemill.errors import BoundExceeded, JobIdConflict, StoreUnavailable
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.program import Batch, FollowUp, Statement
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import (
    GLANCES,
    QUICK,
    READS,
    SNAPSHOTS,
    WRITES,
    glance_for,
    program_for,
    writes,
)
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
    "now": DIALECT.encode(NOW), "lease_expires_at": DIALECT.encode(NOW + LEASE), "lapsed_at": None,
    "deregistered_at": None,
}]  # fmt: skip
OPENING = [{**LIVE[0], "next_due": None, "ready": 0, "paused": 0, "cancels": 0}]
CALM = {
    "now": DIALECT.encode(NOW), "lapsed_jobs": 0, "lapsed_workers": 0, "expired": 0, "held": 0,
    "unsettled": 0, "undue": 0,
}  # fmt: skip


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
    counted = [{"count": len(step.rows)}] if isinstance(step, Batch) else []
    rows = answers.get(getattr(step, "name", "commit"), counted)
    return next(rows) if isinstance(rows, Iterator) else rows


def names(steps):
    return ["FOLLOW-UP" if isinstance(step, FollowUp) else step.name for step in steps]


def ready_row(n, **more):
    return {
        "id": uuid7(n, n).bytes, "wire_name": "t", "queue": "q", "priority": 0, "due_at": 0,
        "attempt": 0, "lapses": 0, "lapses_base": 0, "retry": None, "timeout": None,
        "not_after": None, "tenant": "", "created_at": 0, "trace_context": None, "payload": b"{}",
        "started": 0,
        **more,
    }  # fmt: skip


def test_every_operation_has_exactly_one_program():
    names = {kind.__name__ for kind in (*WRITES, *READS, *SNAPSHOTS)}
    assert names == {kind.__name__ for kind in Operation.__subclasses__()}
    assert len(names) == len(WRITES) + len(READS) + len(SNAPSHOTS)
    assert set(GLANCES) | set(QUICK) <= set(WRITES)
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
        "opening": OPENING,
        "finish_plain": [{"id": report.job_id.bytes} for report in reports],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=reports), ENV), answers)
    assert names(steps) == ["opening", "finish_plain"]
    assert {each.answer for each in answer.reported} == {Answer.APPLIED}


def test_what_the_fast_statement_missed_is_judged_from_its_row():
    reports = plain_reports(2)
    answers = {
        "opening": OPENING, "worker_lease": LIVE, "finish_plain": [{"id": reports[0].job_id.bytes}],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=reports), ENV), answers)
    asked = ["opening", "finish_plain", "reported_jobs", "stored_jobs", "worker_lease"]
    assert names(steps) == asked
    assert [each.answer for each in answer.reported] == [Answer.APPLIED, Answer.GONE]


def test_stale_records_follow_in_a_transaction_of_their_own():
    (report,) = plain_reports(1)
    row = {
        **ready_row(0), "id": report.job_id.bytes, "state": 3, "worker_id": uuid7(8, 8).bytes,
        "attempt": 2, "failures": 0, "failures_base": 0, "cancel_requested": None, "started_at": 0,
        "unsettled": None,
    }  # fmt: skip
    cancels = [{**OPENING[0], "cancels": 1}]
    answers = {"opening": cancels, "worker_lease": LIVE, "reported_jobs": [row]}
    steps, answer = drive(program_for(Exchange(worker=WORKER, outcomes=(report,)), ENV), answers)
    assert names(steps)[-5:] == [
        "recorded_verdict", "cancel_requests", "FOLLOW-UP", "insert_attempt", "prune_attempts",
    ]  # fmt: skip
    assert answer.reported[0].holder.attempt == 2


def test_a_claim_of_jobs_that_never_run_ends_after_a_bounded_number():
    request = ClaimRequest(shares=(Share("q", 500),), limit=500, wire_names=frozenset({"other"}))
    answers = {
        "opening": OPENING,
        "ready_jobs": [ready_row(n) for n in range(500)],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    assert names(steps).count("hold_jobs") == 2
    assert (answer.claimed, answer.next_due) == ((), timedelta(0))


def test_a_job_whose_lapses_exceed_its_limit_is_buried_at_the_claim():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    answers = {
        "opening": OPENING,
        "ready_jobs": [ready_row(1, lapses=11)],
    }  # fmt: skip
    steps, answer = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    (buried,) = [step for step in steps if getattr(step, "name", "") == "bury_jobs"]
    assert buried.params["cause"] == "poison"
    assert answer.claimed == ()


def test_a_dead_lease_claims_nothing_and_renews_nothing():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    unknown = [{**OPENING[0], "lease_expires_at": None}]
    claim = program_for(Exchange(worker=WORKER, claim=request), ENV)
    steps, answer = drive(claim, {"opening": unknown})
    assert (names(steps), answer.live) == (["opening"], False)
    expired = [{**LIVE[0], "lease_expires_at": DIALECT.encode(NOW)}]
    beat = program_for(Beat(worker=WORKER, lease=LEASE), ENV)
    steps, reply = drive(beat, {"clock": NOW_ROW, "worker_lease": expired})
    assert (names(steps)[-1], reply.live) == ("note_lapse", False)


def test_upkeep_is_four_transactions_and_three_of_them_follow_the_first():
    steps, _ = drive(program_for(Maintain(lease=LEASE), ENV), {"clock": NOW_ROW})
    assert names(steps).count("FOLLOW-UP") == 3
    assert names(steps)[-2:] == ["FOLLOW-UP", "unsettled_jobs"]
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
    assert "is quarantined: its " in caplog.text


def test_what_a_worker_wrote_that_no_longer_reads_stands_for_no_name():
    answers = {
        "upkeep": [CALM | {"held": 1}],
        "known_names": [{"wire_names": "{"}, {"wire_names": '["t"]'}],
    }
    steps, answer = drive(glance_for(Maintain(lease=LEASE), ENV), answers)
    assert answer is not None
    assert [step.params["names"] for step in steps if step.name == "known_held"] == [("t",)]


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
        "opening": [{**OPENING[0], "paused": 1, "next_due": DIALECT.encode(NOW)}],
        "paused_queues_of": [{"name": "a"}], "next_due": [{"due_at": None}],
    }  # fmt: skip
    steps, _ = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    asked = {step.params["queue"] for step in steps if "queue" in step.params}
    assert asked == {"b"}


def test_cancel_requests_are_read_only_where_there_are_some():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    answers = {"opening": [{**OPENING[0], "cancels": 1}]}
    for program in (program_for, glance_for):
        steps, _ = drive(program(Exchange(worker=WORKER, claim=request), ENV), answers)
        assert "cancel_requests" in names(steps)


def test_a_claim_reads_no_more_rows_than_it_may_set_aside():
    request = ClaimRequest(shares=(Share("q", 5_000),), limit=5_000, wire_names=frozenset())
    answers = {
        "opening": OPENING, "ready_jobs": [ready_row(n) for n in range(600)],
    }  # fmt: skip
    steps, _ = drive(program_for(Exchange(worker=WORKER, claim=request), ENV), answers)
    assert [step.params["limit"] for step in steps if step.name == "ready_jobs"] == [1_000]


def test_glances_only_read():
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    for operation in (Exchange(worker=WORKER, claim=request), Maintain(lease=LEASE)):
        answers = {"opening": OPENING, "upkeep": [CALM]}
        steps, answer = drive(glance_for(operation, ENV), answers)
        assert answer is not None
        assert not any(isinstance(step, Batch) for step in steps)
        assert all(isinstance(step, Statement) for step in steps)
        assert len(steps) == 1, "an idle worker asks once"


@pytest.mark.parametrize(
    "found",
    [{"ready": 1}, {"next_due": DIALECT.encode(NOW)}, {"next_due": DIALECT.encode(NOW - LEASE)}],
)
def test_a_glance_that_finds_work_leaves_it_to_the_claim(found):
    request = ClaimRequest(shares=(Share("q", 2),), limit=2, wire_names=None)
    answers = {"opening": [OPENING[0] | found]}
    assert drive(glance_for(Exchange(worker=WORKER, claim=request), ENV), answers)[1] is None


@pytest.mark.parametrize("found", sorted(CALM.keys() - {"now"}))
def test_a_glance_that_finds_upkeep_leaves_it_to_the_sweep(found):
    known = {"known_names": [{"wire_names": '["t"]'}], "known_held": [{"found": 1}]}
    answers = {"upkeep": [CALM | {found: 1}], **known}
    assert drive(glance_for(Maintain(lease=LEASE), ENV), answers)[1] is None


def test_a_job_held_under_a_name_that_nobody_knows_is_no_upkeep():
    answers = {"upkeep": [CALM | {"held": 1}], "known_names": [{"wire_names": '["t"]'}]}
    assert drive(glance_for(Maintain(lease=LEASE), ENV), answers)[1] is not None


def test_a_job_that_is_there_and_cannot_be_locked_is_busy():
    reports = plain_reports(2)
    there = {"id": reports[1].job_id.bytes, "state": 3, "digest": b""}
    answers = {"opening": OPENING, "worker_lease": LIVE, "stored_jobs": [there]}
    _, answer = drive(program_for(Exchange(worker=WORKER, outcomes=reports), ENV), answers)
    assert [each.answer for each in answer.reported] == [Answer.GONE, Answer.BUSY]


def test_the_lease_is_read_again_once_the_rows_are_locked():
    (report,) = plain_reports(1)
    row = {
        **ready_row(0), "id": report.job_id.bytes, "state": 3, "worker_id": WORKER.bytes,
        "attempt": 1, "failures": 0, "failures_base": 0, "cancel_requested": None, "started_at": 0,
        "unsettled": None,
    }  # fmt: skip
    expired = [{**LIVE[0], "lease_expires_at": DIALECT.encode(NOW)}]
    program = program_for(Exchange(worker=WORKER, outcomes=(report,)), ENV)
    answers = {"opening": OPENING, "worker_lease": expired, "reported_jobs": [row]}
    steps, answer = drive(program, answers)
    assert names(steps).index("worker_lease") > names(steps).index("reported_jobs")
    assert answer.reported[0].answer is Answer.STALE


def test_what_another_transaction_stored_meanwhile_is_looked_at_again():
    one = NewJob(id=uuid7(1, 1), wire_name="t", idempotency_key="k")
    two = NewJob(id=uuid7(2, 2), wire_name="t")
    program = program_for(Enqueue((one, two)), ENV)
    holder = {"id": uuid7(3, 3).bytes, "state": 1, "idempotency_key": "k"}
    answers = {
        "clock": NOW_ROW, "key_holders": iter([[], [holder]]),
        "insert_job": [{"count": 1, "added": [two.id.bytes]}],
    }  # fmt: skip
    steps, (first, second) = drive(program, answers)
    look = ["stored_jobs", "key_holders"]
    assert names(steps) == ["clock", *look, "insert_job", *look]
    assert (first.job_id, first.deduplicated) == (uuid7(3, 3), True)
    assert (second.job_id, second.deduplicated, second.repeated) == (two.id, False, False)


def test_an_enqueue_that_others_keep_overtaking_gives_up():
    (job,) = (NewJob(id=uuid7(1, 1), wire_name="t", idempotency_key="k"),)
    answers = {"clock": NOW_ROW, "insert_job": [{"count": 0, "added": None}]}
    with pytest.raises(StoreUnavailable, match="10 times"):
        drive(program_for(Enqueue((job,)), ENV), answers)


def test_jobs_are_inserted_in_the_order_of_their_keys():
    jobs = tuple(
        NewJob(id=uuid7(n, n), wire_name="t", idempotency_key=key)
        for n, key in enumerate(["b", None, "a"], start=1)
    )
    steps, answers = drive(program_for(Enqueue(jobs), ENV), {"clock": NOW_ROW})
    assert [row["idempotency_key"] for row in steps[-1].rows] == [None, "a", "b"]
    assert [each.job_id for each in answers] == [job.id for job in jobs]


def test_a_row_that_a_live_worker_holds_by_now_is_not_lapsed():
    rows = [
        {
            **ready_row(n), "state": 3, "worker_id": worker.bytes, "attempt": 2, "failures": 0,
            "failures_base": 0, "cancel_requested": None, "started_at": 0,
        }
        for n, worker in enumerate((WORKER, uuid7(8, 8)), start=1)
    ]  # fmt: skip
    leases = [{**LIVE[0], "id": WORKER.bytes}]
    answers = {"clock": NOW_ROW, "lapsed_jobs": rows, "leases": leases}
    steps, answer = drive(program_for(Maintain(lease=LEASE), ENV), answers)
    assert [each.job_id for each in answer.lapsed] == [uuid7(2, 2)]
    order = names(steps)
    assert order.index("leases") == order.index("lapsed_jobs") + 1


def test_a_large_request_is_inserted_in_chunks_of_one_transaction():
    jobs = tuple(NewJob(id=uuid7(n, n), wire_name="t") for n in range(1, 2502))
    steps, answers = drive(program_for(Enqueue(jobs), ENV), {"clock": NOW_ROW})
    batches = [step for step in steps if isinstance(step, Batch)]
    assert [len(batch.rows) for batch in batches] == [1000, 1000, 501]
    assert all(isinstance(step, Statement | Batch) for step in steps)
    assert [each.job_id for each in answers] == [job.id for job in jobs]
