"""Rows that something else has changed: one of them stops nothing but its own job (P15, C6)."""

import sqlite3
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE

from tidemill.sql.programs.quarantine import UNREADABLE_JOB
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat
from tidemill.store.monitor import CountJobs, GetEnd, ListJobs, ListQueues, ListWorkers
from tidemill.store.operators import Cancel, Requeue, Rerun
from tidemill.values import causes
from tidemill.values.ids import ActionId, JobId
from tidemill.values.monitor import JobFilter
from tidemill.values.operators import Effect
from tidemill.values.outcomes import Answer, ErrorInfo, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

HOUR = timedelta(hours=1)
BEYOND = 10**18
"""Microseconds: some thirty thousand years, past the end of the calendar."""
NO_TEXT = "CAST(x'ff' AS TEXT)"

WRONG = [
    ("retry", "'{bad'"),
    ("retry", "'{\"max_attempts\": 0}'"),
    ("retry", "7"),
    ("priority", "'high'"),
    ("priority", "40000"),
    ("attempt", "'many'"),
    ("attempt", "-1"),
    ("attempt", "9223372036854775807"),
    ("lapses", "'many'"),
    ("due_at", "'soon'"),
    ("due_at", f"-{BEYOND}"),
    ("created_at", str(BEYOND)),
    ("timeout", "'long'"),
    ("not_after", "'never'"),
    ("wire_name", "x'00'"),
    ("wire_name", NO_TEXT),
    ("tenant", NO_TEXT),
    ("trace_context", "x'01'"),
    ("payload", "7"),
    ("id", "x'0102'"),
    ("id", "'not sixteen bytes, but text'"),
]
OF_FIRST = "WHERE id = (SELECT min(id) FROM tidemill_jobs)"
OF_LAST = "WHERE id = (SELECT max(id) FROM tidemill_jobs)"


@pytest.fixture
def stored(path):
    """Read rows as they are stored."""

    def read(sql, *values):
        with sqlite3.connect(path) as connection:
            found = connection.execute(sql, values).fetchall()
        connection.close()
        return found

    return read


@pytest.fixture
def act(bench):
    """Perform an action of an operator, under an id of its own."""

    def perform(kind, job_id):
        action = ActionId(bench.fresh())
        if kind is Rerun:
            rerun = Rerun(job_id=job_id, new_id=JobId(bench.fresh()), actor="ada", action=action)
            return bench.store.perform_sync(rerun)
        (result,) = bench.store.perform_sync(kind(job_ids=(job_id,), actor="ada", action=action))
        return result

    return perform


@pytest.mark.parametrize(("column", "value"), WRONG)
def test_a_ready_row_that_cannot_be_read_is_quarantined_and_the_claim_goes_on(
    bench, alter, stored, column, value
):
    good, bad = bench.job(priority=1), bench.job(priority=2)
    bench.enqueue(good, bad)
    alter(f"UPDATE tidemill_jobs SET {column} = {value} {OF_LAST}")
    worker = bench.register()
    assert [job.id for job in bench.claim(worker)] == [good.id]
    assert stored("SELECT cause FROM tidemill_jobs WHERE state = 7") == [(causes.UNREADABLE,)]
    ((kind, said),) = stored("SELECT error_kind, error_message FROM tidemill_attempts")
    assert kind == UNREADABLE_JOB
    assert column in said
    assert bench.claim(worker) == ()


@pytest.mark.parametrize(
    "wrong", [f"{c} = {v}" for c, v in WRONG if c not in {"lapses", "not_after"}]
)
def test_a_scheduled_row_that_cannot_be_read_keeps_nobody_waiting(
    bench, clock, alter, stored, wrong
):
    soon, later, bad = bench.job(delay=HOUR), bench.job(delay=2 * HOUR), bench.job(delay=HOUR)
    bench.enqueue(soon, later, bad)
    alter(f"UPDATE tidemill_jobs SET {wrong} {OF_LAST}")
    worker = bench.register()
    bench.claim(worker)
    clock.advance(HOUR - timedelta(seconds=1))
    worker = bench.register()
    assert bench.claim(worker) == ()
    clock.advance(timedelta(seconds=1))
    assert [job.id for job in bench.claim(worker)] == [soon.id]
    clock.advance(HOUR)
    worker = bench.register()
    assert [job.id for job in bench.claim(worker)] == [later.id]
    assert stored("SELECT cause FROM tidemill_jobs WHERE state = 7") == [(causes.UNREADABLE,)]


def test_a_lone_scheduled_row_without_a_due_instant_is_found_at_the_next_poll(bench, alter, stored):
    bench.enqueue(bench.job(delay=HOUR))
    alter("UPDATE tidemill_jobs SET due_at = 'soon'")
    assert bench.claim(bench.register()) == ()
    assert stored("SELECT state, cause FROM tidemill_jobs") == [(7, causes.UNREADABLE)]


@pytest.mark.parametrize("wrong", ["'soon'", "x'00'"])
def test_a_scheduled_row_without_a_due_instant_is_found_behind_one_that_is_due_later(
    bench, alter, stored, wrong
):
    other = bench.job(delay=HOUR, queue="other")
    later, bad = bench.job(delay=HOUR), bench.job(delay=HOUR)
    bench.enqueue(other, later, bad)
    alter(f"UPDATE tidemill_jobs SET due_at = {wrong} {OF_LAST}")
    worker = bench.register()
    bench.maintain()
    assert bench.claim(worker) == ()
    assert bench.get(bad.id).state is JobState.QUARANTINED
    assert bench.get(later.id).state is bench.get(other.id).state is JobState.SCHEDULED


def test_rows_without_a_due_instant_are_found_some_at_a_time(bench, alter):
    bench.enqueue(*[bench.job(delay=HOUR, queue=f"q{n % 2}") for n in range(3)])
    alter("UPDATE tidemill_jobs SET due_at = 'soon'")
    assert bench.maintain(limit=2).more
    assert not bench.maintain(limit=2).more
    bench.claim(bench.register(queues=("q0", "q1")), queues=("q0", "q1"))
    counts = bench.store.perform_sync(CountJobs())
    assert [(each.state, each.count) for each in counts] == [
        (JobState.QUARANTINED, 2),
        (JobState.QUARANTINED, 1),
    ]


def test_a_row_due_beyond_the_calendar_waits_and_hides_no_other(bench, alter, clock):
    near, far = bench.job(delay=HOUR, queue="other"), bench.job(delay=HOUR)
    bench.enqueue(near, far)
    alter(f"UPDATE tidemill_jobs SET due_at = {BEYOND * 5} {OF_LAST}")
    worker = bench.register()
    ask = Exchange(worker=worker, claim=bench.request(queues=("default", "other")))
    assert bench.store.perform_sync(ask).next_due == HOUR
    clock.advance(HOUR)
    ask = Exchange(worker=bench.register(), claim=ask.claim)
    answer = bench.store.perform_sync(ask)
    assert [job.id for job in answer.claimed] == [near.id]
    assert answer.next_due > HOUR, "and its worker need not look again and again"


def test_a_row_that_this_worker_has_no_handler_for_is_left_to_one_that_has(bench, alter):
    """Another version may have written what this one does not understand."""
    job = bench.job(wire_name="t.other")
    bench.enqueue(job)
    alter("UPDATE tidemill_jobs SET retry = '{bad'")
    assert bench.claim(bench.register()) == ()
    assert bench.get(job.id).state is JobState.READY
    bench.register(names=("t.other",))
    bench.claim(bench.register(names=("t.other",)), names=frozenset({"t.other"}))
    assert bench.get(job.id).state is JobState.QUARANTINED


def test_counters_beyond_32_bits_are_counted_on(bench, alter, outcome):
    job = bench.job(retry=Retry.immediate(max_attempts=2**40))
    bench.enqueue(job)
    many = 2**35
    alter(f"UPDATE tidemill_jobs SET attempt = {many}, failures = {many}, lapses = {many},"
          f" lapses_base = {many}")  # fmt: skip
    worker = bench.register()
    (claimed,) = bench.claim(worker)
    bench.report(worker, outcome(claimed, Verdict.FAILED))
    found = bench.get(job.id).record
    assert (found.attempt, found.failures, found.state) == (many + 1, many + 1, JobState.READY)


def test_a_payload_typed_by_hand_as_text_is_as_good(bench, alter):
    bench.enqueue(bench.job())
    alter("UPDATE tidemill_jobs SET payload = '{\"a\":1}'")
    (job,) = bench.claim(bench.register())
    assert job.payload == b'{"a":1}'


@pytest.mark.parametrize(
    "wrong",
    [
        *(f"{c} = {v}" for c, v in WRONG if c in {"retry", "attempt", "lapses", "due_at", "id"}),
        "worker_id = x'0102'",
        "worker_id = NULL",
        "failures = 'many'",
        "started_at = 'then'",
        "cancel_requested = x'00'",
    ],
)
def test_a_running_row_that_cannot_be_read_is_quarantined_by_the_sweep(
    bench, clock, alter, stored, wrong
):
    jobs = [bench.job() for _ in range(3)]
    bench.enqueue(*jobs)
    bench.claim(bench.register())
    alter(f"UPDATE tidemill_jobs SET {wrong} {OF_LAST}")
    clock.advance(LEASE)
    assert [each.job_id for each in bench.maintain().lapsed] == [job.id for job in jobs[:2]]
    assert stored("SELECT cause FROM tidemill_jobs WHERE state = 7") == [(causes.UNREADABLE,)]
    assert bench.maintain().lapsed == ()


def test_running_rows_that_cannot_be_read_never_hide_the_others_however_many(bench, clock, alter):
    jobs = [bench.job() for _ in range(7)]
    bench.enqueue(*jobs)
    bench.claim(bench.register())
    for job in jobs[:-1]:
        alter("UPDATE tidemill_jobs SET retry = '{bad' WHERE id = ?", job.id.bytes)
    clock.advance(LEASE)
    rounds = [bench.maintain(limit=3) for _ in range(3)]
    assert [each.more for each in rounds] == [True, True, False]
    assert [each.job_id for each in rounds[-1].lapsed] == [jobs[-1].id]


@pytest.mark.parametrize(
    "wrong", ["lease_expires_at = 'x'", f"lease_expires_at = {BEYOND}", "lease = 'x'"]
)
def test_a_lease_that_cannot_be_read_is_none_and_its_jobs_are_recovered(bench, alter, wrong, clock):
    bench.enqueue(bench.job())
    worker = bench.register()
    bench.claim(worker)
    clock.advance(LEASE)
    bench.register()
    alter(f"UPDATE tidemill_workers SET {wrong} WHERE id = ?", worker.bytes)
    assert [each.worker for each in bench.maintain().lapsed] == [worker]


def test_a_worker_whose_lease_cannot_be_read_is_told_that_it_has_none(bench, alter):
    worker = bench.register()
    alter("UPDATE tidemill_workers SET lease_expires_at = 'x'")
    assert not bench.store.perform_sync(Beat(worker=worker, lease=LEASE)).live
    assert not bench.store.perform_sync(Exchange(worker=worker, claim=bench.request())).live


@pytest.mark.parametrize("wrong", ["id = 'text'", "attempt = 'many'"])
def test_a_running_row_that_cannot_be_read_costs_its_worker_no_heartbeat(bench, alter, wrong):
    kept, bad = bench.job(), bench.job()
    bench.enqueue(kept, bad)
    worker = bench.register()
    bench.claim(worker)
    alter(f"UPDATE tidemill_jobs SET {wrong} {OF_LAST}")
    reply = bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
    assert reply.live
    assert [pair.job_id for pair in reply.running] == [kept.id]


@pytest.mark.parametrize("wrong", ["retry = '{bad'", "failures = 'many'", "lapses_base = -7"])
def test_the_end_of_an_attempt_is_recorded_whatever_has_become_of_its_row(
    bench, alter, outcome, wrong
):
    good, bad = bench.job(), bench.job()
    bench.enqueue(good, bad)
    worker = bench.register()
    jobs = bench.claim(worker)
    alter(f"UPDATE tidemill_jobs SET {wrong} {OF_LAST}")
    failed = [outcome(job, Verdict.FAILED, error=ErrorInfo("app.Broken", "no")) for job in jobs]
    assert [each.answer for each in bench.report(worker, *failed)] == [Answer.APPLIED] * 2
    assert len(bench.get(bad.id).attempts) == 1


@pytest.mark.parametrize("wrong", ["worker_id = x'01'", "attempt = 'many'", "state = 'odd'"])
def test_a_report_on_a_row_that_names_nobody_any_more_is_stale(bench, alter, outcome, wrong):
    good, bad = bench.job(), bench.job()
    bench.enqueue(good, bad)
    worker = bench.register()
    jobs = bench.claim(worker)
    alter(f"UPDATE tidemill_jobs SET {wrong} {OF_LAST}")
    said = bench.report(worker, *[outcome(job, output=b"1") for job in jobs])
    assert [each.answer for each in said] == [Answer.APPLIED, Answer.STALE]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *WRONG,
        ("state", "99"),
        ("state", "-1"),
        ("state", "'ready'"),
        ("held", "7"),
        ("queue", NO_TEXT),
        ("cause", "x'00'"),
        ("rerun_of", "x'00'"),
        ("finished_at", "'then'"),
        ("idempotency_key", NO_TEXT),
    ],
)
def test_lists_and_counts_show_a_row_that_cannot_be_read_with_the_names_of_its_faults(
    bench, alter, column, value
):
    good, bad = bench.job(), bench.job()
    bench.enqueue(good, bad)
    alter(f"UPDATE tidemill_jobs SET {column} = {value} {OF_LAST}")
    ask = bench.store.perform_sync
    jobs = {job.unreadable: job for job in ask(ListJobs()).jobs}
    assert sorted(jobs) in ([(), (column,)], [()] if column == "payload" else [])
    assert sum(each.count for each in ask(CountJobs())) == 2
    assert ask(ListQueues())
    if column != "id":
        found = bench.get(bad.id).record
        assert (found.unreadable, found.wire_name) == (
            (column,),
            jobs.get((column,), found).wire_name,
        )
        assert ask(GetEnd(bad.id)) is not None


def test_rows_with_ids_that_cannot_be_read_do_not_keep_a_list_from_its_end(bench, alter):
    bench.enqueue(*[bench.job() for _ in range(6)])
    for wrong in ("x'0102'", "'text'"):
        alter(f"UPDATE tidemill_jobs SET id = {wrong} {OF_FIRST}")
    seen, cursor = [], None
    for _ in range(9):
        page = bench.store.perform_sync(ListJobs(limit=2, cursor=cursor))
        seen += page.jobs
        cursor = page.next_cursor
        if cursor is None:
            break
    assert cursor is None
    assert len({job.id for job in seen if not job.unreadable}) == 4
    assert any(job.unreadable == ("id",) for job in seen)


def test_a_state_that_nobody_knows_is_listed_as_quarantined_and_flagged(bench, alter):
    job = bench.job()
    bench.enqueue(job)
    alter("UPDATE tidemill_jobs SET state = 99")
    for states in ({JobState.QUARANTINED}, set()):
        where = JobFilter(states=frozenset(states))
        (found,) = bench.store.perform_sync(ListJobs(where=where)).jobs
        assert (found.state, found.unreadable) == (JobState.QUARANTINED, ("state",))
    where = JobFilter(states=frozenset({JobState.READY}))
    assert bench.store.perform_sync(ListJobs(where=where)).jobs == ()
    assert bench.claim(bench.register()) == ()


@pytest.mark.parametrize(
    "wrong",
    ["verdict = 99", "worker_id = x'00'", "ended_at = 'then'", f"error_message = {NO_TEXT}"],
)
def test_an_attempts_record_that_cannot_be_read_is_shown_and_flagged(bench, alter, outcome, wrong):
    bench.enqueue(bench.job())
    worker = bench.register()
    (job,) = bench.claim(worker)
    bench.report(worker, outcome(job, Verdict.FAILED, error=ErrorInfo("app.Broken", "no")))
    alter(f"UPDATE tidemill_attempts SET {wrong}")
    (attempt,) = bench.get(job.id).attempts
    assert attempt.unreadable == (wrong.split()[0],)


@pytest.mark.parametrize(
    "wrong", ["queues = '{'", "host = x'00'", "slots = 'x'", "started_at = ''"]
)
def test_a_workers_row_that_cannot_be_read_is_listed_with_the_others(bench, alter, wrong):
    bench.register()
    broken = bench.register()
    alter(f"UPDATE tidemill_workers SET {wrong} WHERE id = ?", broken.bytes)
    assert len(bench.store.perform_sync(ListWorkers())) == 2


def test_what_cannot_be_read_is_requeued_only_once_it_can(bench, alter, act):
    job = bench.job()
    bench.enqueue(job)
    alter("UPDATE tidemill_jobs SET retry = '{bad'")
    worker = bench.register()
    bench.claim(worker)
    for kind in (Requeue, Rerun):
        assert act(kind, job.id).effect is Effect.UNREADABLE
    assert bench.get(job.id).state is JobState.QUARANTINED
    alter("UPDATE tidemill_jobs SET retry = NULL")
    assert act(Requeue, job.id).effect is Effect.DONE
    (claimed,) = bench.claim(worker)
    assert (claimed.id, claimed.attempt) == (job.id, 2)


@pytest.mark.parametrize(
    "wrong", ["retry = '{bad'", "priority = 'high'", "state = 99", "state = 'x'"]
)
def test_what_cannot_be_read_can_be_cancelled(bench, alter, act, wrong):
    job = bench.job()
    bench.enqueue(job)
    alter(f"UPDATE tidemill_jobs SET {wrong}")
    assert act(Requeue, job.id).effect in {Effect.UNREADABLE, Effect.UNCHANGED}
    assert act(Cancel, job.id).effect is Effect.DONE
    found = bench.get(job.id)
    assert (found.state, found.cause) == (JobState.CANCELLED, "operator:ada")
