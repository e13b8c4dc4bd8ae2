"""What an SQLite store answers, operation by operation, where the file itself matters."""

import gc
import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE

from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import (
    ConfigurationError,
    InvalidValue,
    SchemaError,
    StoreError,
    StoreUnavailable,
    WorkerIdUsed,
)
from tidemill.sql.migrations import migrations
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.monitor import CountJobs, ListJobs, ListWorkers
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values import causes
from tidemill.values.outcomes import Answer, ErrorInfo, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import Held, JobState
from tidemill.values.tags import Tag
from tidemill.values.workers import WorkerInfo

SECOND = timedelta(seconds=1)


def test_a_job_goes_from_enqueue_to_success(bench, outcome):
    job = bench.job(payload=b'{"n":1}', tags=frozenset({Tag("blue"), Tag("k", "v")}))
    assert bench.enqueue(job)[0].state is JobState.READY
    worker = bench.register()
    (claimed,) = bench.claim(worker)
    assert (claimed.payload, claimed.attempt, claimed.worker) == (b'{"n":1}', 1, worker)
    (said,) = bench.report(worker, outcome(claimed, output=b"42", tags=frozenset({Tag("new")})))
    assert (said.answer, said.state) == (Answer.APPLIED, JobState.SUCCEEDED)
    details = bench.get(job.id)
    assert details.output == b"42"
    assert details.tags == {Tag("blue"), Tag("k", "v"), Tag("new")}
    assert details.record.worker == worker
    assert details.attempts == ()


def test_every_option_of_a_job_reads_back_as_it_was_written(bench, clock):
    job = bench.job(
        queue="mail", priority=-5, due_at=clock() + SECOND, not_after=clock() + LEASE,
        timeout=timedelta(microseconds=1), retry=Retry.listed(SECOND, LEASE, jitter=0.5),
        idempotency_key="k", tenant="t", trace_context="00-1", payload=b"\x00\xff",
    )  # fmt: skip
    bench.enqueue(job)
    record = bench.get(job.id).record
    for name in ("queue", "priority", "due_at", "not_after", "timeout", "retry",
                 "idempotency_key", "tenant", "trace_context", "rerun_of"):  # fmt: skip
        assert getattr(record, name) == getattr(job, name), name
    assert record.state is JobState.SCHEDULED
    assert record.created_at == clock()
    assert bench.get(job.id).payload == job.payload


def test_a_batch_of_outcomes_answers_each_in_its_place(bench, outcome):
    jobs = [bench.job() for _ in range(6)]
    bench.enqueue(*jobs)
    worker = bench.register()
    a, b, c, d, e, f = bench.claim(worker)
    bench.report(worker, outcome(f))
    wrong = outcome(d)
    wrong = type(wrong)(job_id=d.id, attempt=d.attempt + 1, verdict=wrong.verdict)
    gone = type(wrong)(job_id=bench.fresh(), attempt=1, verdict=wrong.verdict)
    error = ErrorInfo("E", "no", "trace")
    said = bench.report(
        worker, outcome(a), outcome(b, Verdict.FAILED, error=error), outcome(c, output=b"1"),
        wrong, gone, outcome(e), outcome(e), outcome(f),
    )  # fmt: skip
    assert [each.answer for each in said] == [
        Answer.APPLIED, Answer.APPLIED, Answer.APPLIED, Answer.STALE, Answer.GONE,
        Answer.APPLIED, Answer.ALREADY_APPLIED, Answer.ALREADY_APPLIED,
    ]  # fmt: skip
    assert [each.job_id for each in said[:3]] == [a.id, b.id, c.id]
    (failed,) = bench.get(b.id).attempts
    assert (failed.verdict, failed.error.detail, failed.stale) == (Verdict.FAILED, "trace", False)
    (stale,) = bench.get(d.id).attempts
    assert (stale.stale, stale.holder.attempt, stale.holder.worker) == (True, 1, worker)
    assert bench.get(d.id).record.state is JobState.RUNNING


def test_a_repeated_failure_is_already_applied_and_superseded_once_the_job_moved_on(
    bench, clock, outcome
):
    bench.enqueue(bench.job(retry=Retry.immediate()))
    worker = bench.register()
    (first,) = bench.claim(worker)
    assert bench.report(worker, outcome(first, Verdict.FAILED))[0].answer is Answer.APPLIED
    again = bench.report(worker, outcome(first, Verdict.FAILED))[0]
    assert (again.answer, again.state) == (Answer.ALREADY_APPLIED, JobState.READY)
    bench.claim(worker)
    assert bench.report(worker, outcome(first, Verdict.FAILED))[0].answer is Answer.SUPERSEDED
    assert bench.report(worker, outcome(first, Verdict.SNOOZED))[0].answer is Answer.STALE


def test_no_report_applies_once_the_lease_has_ended(bench, clock, outcome):
    bench.enqueue(bench.job(), bench.job())
    worker = bench.register()
    plain, rich = bench.claim(worker)
    clock.advance(LEASE)
    said = bench.report(worker, outcome(plain), outcome(rich, output=b"1"))
    assert [each.answer for each in said] == [Answer.STALE, Answer.STALE]
    assert bench.get(plain.id).record.state is JobState.RUNNING
    assert bench.store.perform_sync(Beat(worker=worker, lease=LEASE)).live is False
    assert not bench.store.perform_sync(Exchange(worker=worker, claim=bench.request())).live


def test_a_claim_sets_aside_what_may_not_run_and_still_fills_its_slots(bench, clock):
    strange = [bench.job(wire_name="t.other", priority=9) for _ in range(5)]
    late = bench.job(priority=8, not_after=clock() + SECOND)
    good = [bench.job() for _ in range(3)]
    bench.enqueue(*strange, late, *good)
    clock.advance(SECOND)
    worker = bench.register()
    assert [job.id for job in bench.claim(worker, limit=3)] == [job.id for job in good]
    assert bench.get(strange[0].id).record.held is Held.UNKNOWN_WIRE_NAME
    expired = bench.get(late.id).record
    assert (expired.state, expired.cause) == (JobState.CANCELLED, "expired")
    other = bench.register(names=("t.other",))
    assert len(bench.claim(other, names=frozenset({"t.other"}))) == 5


def test_a_claim_gives_each_queue_its_share_and_then_what_room_is_left(bench):
    bench.enqueue(*[bench.job(queue="a") for _ in range(2)])
    bench.enqueue(*[bench.job(queue="b") for _ in range(10)])
    worker = bench.register(queues=("a", "b"))
    shares = bench.request(6, queues=("a", "b"))
    shares = type(shares)(
        shares=(type(shares.shares[0])("a", 4), type(shares.shares[0])("b", 2)),
        limit=6, wire_names=None,
    )  # fmt: skip
    answer = bench.store.perform_sync(Exchange(worker=worker, claim=shares))
    assert [job.queue for job in answer.claimed] == ["a"] * 2 + ["b"] * 4


def test_jobs_come_by_priority_then_due_instant_then_id(bench, clock):
    later = bench.job(due_at=clock() - SECOND)
    sooner = bench.job(due_at=clock() - 2 * SECOND)
    urgent, urgent_too = bench.job(priority=1), bench.job(priority=1)
    bench.enqueue(urgent_too, later, sooner, urgent)
    order = [job.id for job in bench.claim(bench.register())]
    assert order == [urgent.id, urgent_too.id, sooner.id, later.id]


def test_the_wait_for_the_next_due_job_is_told_and_it_is_claimed_when_due(bench, clock):
    bench.enqueue(bench.job(delay=5 * SECOND), bench.job(delay=SECOND, queue="else"))
    worker = bench.register()
    ask = Exchange(worker=worker, claim=bench.request())
    assert bench.store.perform_sync(ask).next_due == 5 * SECOND
    clock.advance(5 * SECOND)
    answer = bench.store.perform_sync(ask)
    assert (len(answer.claimed), answer.next_due) == (1, None)


def test_a_sweep_ends_the_attempts_of_a_dead_worker_and_marks_it(bench, clock):
    jobs = [bench.job(), bench.job(retry=Retry(interruption_limit=0))]
    bench.enqueue(*jobs)
    worker = bench.register()
    bench.claim(worker)
    assert bench.maintain().lapsed == ()
    clock.advance(LEASE)
    lapsed = {each.job_id: each for each in bench.maintain().lapsed}
    assert lapsed[jobs[0].id].state is JobState.SCHEDULED
    assert (lapsed[jobs[1].id].state, lapsed[jobs[1].id].cause) == (JobState.DEAD, "poison")
    record = bench.get(jobs[0].id)
    assert (record.record.lapses, record.record.worker) == (1, None)
    assert record.attempts[0].verdict is Verdict.LAPSED
    (listed,) = bench.store.perform_sync(ListWorkers())
    assert (listed.live, listed.lapsed_at) == (False, clock())
    assert bench.maintain().lapsed == ()


def test_a_policy_that_no_longer_reads_does_not_stop_the_sweep(bench, clock, path):
    jobs = [bench.job(), bench.job()]
    bench.enqueue(*jobs)
    bench.claim(bench.register())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tidemill_jobs SET retry = '{\"jitter\": 7' WHERE id = ?",
                           (jobs[0].id.bytes,))  # fmt: skip
    connection.close()
    clock.advance(LEASE)
    assert [each.job_id for each in bench.maintain().lapsed] == [jobs[1].id]
    assert bench.get(jobs[0].id).cause == causes.UNREADABLE


def test_a_deregistered_worker_is_listed_no_more_and_its_id_never_used_again(bench):
    worker = bench.register()
    bench.store.perform_sync(Deregister(worker))
    assert bench.store.perform_sync(ListWorkers()) == ()
    info = WorkerInfo(id=worker, host="host", pid=1, version="0", queues=("default",),
                      wire_names=frozenset({"t.job"}), slots=10)  # fmt: skip
    with pytest.raises(WorkerIdUsed, match="deregistered"):
        bench.store.perform_sync(Register(info=info, lease=LEASE))


def test_an_action_is_done_once_and_answered_the_same_ever_after(bench, clock):
    waiting, gone = bench.job(delay=LEASE), bench.fresh()
    bench.enqueue(waiting)
    action = Cancel(job_ids=(waiting.id, gone), actor="ann", action=bench.fresh())
    first = bench.store.perform_sync(action)
    assert [each.effect.value for each in first] == ["done", "not-found"]
    assert bench.store.perform_sync(action) == first
    assert bench.get(waiting.id).record.cause == "operator:ann"
    again = Requeue(job_ids=(waiting.id,), actor="ann", action=action.action)
    with pytest.raises(InvalidValue, match="belongs to a cancel"):
        bench.store.perform_sync(again)


def test_a_requeue_yields_to_the_job_that_has_its_key_now(bench):
    old, new = bench.job(idempotency_key="k"), bench.job(idempotency_key="k")
    bench.enqueue(old)
    bench.store.perform_sync(Cancel(job_ids=(old.id,), actor="a", action=bench.fresh()))
    assert not bench.enqueue(new)[0].deduplicated
    ask = Requeue(job_ids=(old.id,), actor="a", action=bench.fresh())
    (held,) = bench.store.perform_sync(ask)
    assert (held.effect.value, held.other) == ("key-held", new.id)


def test_two_jobs_of_one_key_cannot_be_requeued_by_one_action(bench):
    jobs = [bench.job(idempotency_key="k") for _ in range(2)]
    for job in jobs:
        bench.enqueue(job)
        bench.store.perform_sync(Cancel(job_ids=(job.id,), actor="a", action=bench.fresh()))
    ids = tuple(job.id for job in jobs)
    ask = Requeue(job_ids=ids, actor="a", action=bench.fresh())
    assert [each.effect.value for each in bench.store.perform_sync(ask)] == ["done", "key-held"]


def test_a_rerun_is_a_new_job_with_the_old_content(bench, outcome):
    job = bench.job(payload=b'{"a":2}', tags=frozenset({Tag("x")}), idempotency_key="k")
    bench.enqueue(job)
    worker = bench.register()
    bench.report(worker, outcome(bench.claim(worker)[0]))
    new = bench.fresh()
    ask = Rerun(job_id=job.id, new_id=new, actor="a", action=bench.fresh())
    assert bench.store.perform_sync(ask).other == new
    copy = bench.get(new)
    assert (copy.payload, copy.tags, copy.record.rerun_of) == (job.payload, job.tags, job.id)
    assert copy.record.idempotency_key is None
    assert bench.store.perform_sync(ask).other == new


def test_run_now_makes_a_scheduled_job_ready(bench, clock):
    job = bench.job(delay=LEASE)
    bench.enqueue(job)
    ask = RunNow(job_ids=(job.id,), actor="a", action=bench.fresh())
    assert bench.store.perform_sync(ask)[0].state is JobState.READY
    assert bench.get(job.id).record.due_at == clock()


def test_pages_go_from_the_newest_to_the_oldest_job(bench):
    jobs = [bench.job() for _ in range(5)]
    bench.enqueue(*jobs)
    shown, cursor = [], None
    while True:
        page = bench.store.perform_sync(ListJobs(limit=2, cursor=cursor))
        shown += [job.id for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert shown == [job.id for job in reversed(jobs)]
    (count,) = bench.store.perform_sync(CountJobs())
    assert (count.queue, count.state, count.count) == ("default", JobState.READY, 5)


def test_only_the_last_attempts_of_a_job_are_kept(bench, outcome):
    bench.enqueue(bench.job(retry=Retry.immediate(max_attempts=100)))
    worker = bench.register()
    for _ in range(13):
        (claimed,) = bench.claim(worker)
        bench.report(worker, outcome(claimed, Verdict.FAILED))
    details = bench.get(claimed.id)
    assert [each.attempt for each in details.attempts] == list(range(4, 14))
    assert details.record.failures == 13


def test_a_snooze_beyond_the_calendar_is_recorded_all_the_same(bench, outcome):
    bench.enqueue(bench.job())
    worker = bench.register()
    (claimed,) = bench.claim(worker)
    said = bench.report(worker, outcome(claimed, Verdict.SNOOZED, delay=timedelta.max))
    assert said[0].answer is Answer.APPLIED
    assert bench.get(claimed.id).record.due_at.year == 9999


def test_an_idle_worker_writes_nothing(bench, path):
    worker = bench.register()
    with sqlite3.connect(path, isolation_level=None) as watcher:
        before = watcher.execute("PRAGMA data_version").fetchone()
        for _ in range(3):
            bench.claim(worker)
            bench.maintain()
        assert watcher.execute("PRAGMA data_version").fetchone() == before
    watcher.close()


def test_an_idle_worker_does_not_wait_for_an_open_write_transaction(bench, path):
    worker = bench.register()
    with sqlite3.connect(path, isolation_level=None) as user:
        user.execute("BEGIN IMMEDIATE")
        assert bench.claim(worker) == ()
        assert bench.maintain().lapsed == ()
        user.execute("ROLLBACK")
    user.close()


def test_a_busy_database_is_unavailable_and_nothing_was_written(bench, path):
    bench.register()
    with sqlite3.connect(path, isolation_level=None) as user:
        user.execute("BEGIN IMMEDIATE")
        job = bench.job()
        with pytest.raises(StoreUnavailable, match="busy"):
            bench.enqueue(job)
        assert bench.get(job.id) is None
        user.execute("ROLLBACK")
    user.close()
    assert bench.enqueue(job)[0].job_id == job.id


def test_a_dedicated_connection_does_not_queue_behind_the_writer(bench, store):
    worker = bench.register()
    held, go_on = threading.Event(), threading.Event()

    def occupy(_channel):
        held.set()
        go_on.wait()

    store._opened.writer.submit(occupy)
    held.wait()
    with store.dedicated() as channel:
        assert channel.perform(Beat(worker=worker, lease=LEASE)).live
    go_on.set()


def test_a_closed_store_says_so_and_closes_twice(store):
    store.perform_sync(CountJobs())
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.perform_sync(CountJobs())


def test_a_store_that_nobody_holds_ends_its_threads(path):
    store = SqliteStore(path)
    store.perform_sync(CountJobs())
    threads = [store._opened.writer._thread, store._opened.reader._thread]
    del store
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_an_interpreter_that_ends_with_an_open_store_ends_in_silence(path):
    program = (
        "from tidemill.adapters.sqlite import SqliteStore\n"
        "from tidemill.store.monitor import CountJobs\n"
        f"store = SqliteStore({str(path)!r})\n"
        "store.watch(lambda: None)\n"
        "print(store.perform_sync(CountJobs()))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("()\n", "")


def test_constructing_a_store_opens_nothing(path):
    SqliteStore(path)
    assert not path.exists()


def test_a_store_that_may_not_migrate_names_the_command(path):
    store = SqliteStore(path, auto_migrate=False)
    with pytest.raises(SchemaError, match=f"run `tidemill migrate --store sqlite:///{path}`"):
        store.perform_sync(CountJobs())
    steps = tuple(step.name for step in migrations("sqlite"))
    assert tuple(name for name, _sql in store.plan()) == steps
    assert store.migrate() == steps
    assert store.plan() == ()
    assert store.migrate() == ()
    assert store.perform_sync(CountJobs()) == ()
    store.close()


def test_a_schema_that_is_too_new_is_refused_with_both_versions(path, store):
    store.perform_sync(CountJobs())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tidemill_meta SET value = 99 WHERE name = 'min_compatible'")
    connection.close()
    newer = SqliteStore(path)
    newest = migrations("sqlite")[-1].version
    with pytest.raises(SchemaError, match=f"from 99 on; this Tidemill knows version {newest}"):
        newer.perform_sync(CountJobs())
    newer.close()


@pytest.mark.parametrize("where", [":memory:", "", "file:x.db?mode=memory"])
def test_an_in_memory_database_is_no_store(where):
    with pytest.raises(ConfigurationError, match="not a file on disk"):
        SqliteStore(where)


def test_a_folder_that_is_not_there_is_named_with_what_to_do(tmp_path):
    store = SqliteStore(tmp_path / "none" / "x.db")
    with pytest.raises(StoreError, match="folder must exist"):
        store.perform_sync(CountJobs())
    store.close()


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database at all, but long enough to be read" * 50)
    store = SqliteStore(tmp_path / "x.db")
    with pytest.raises(StoreError, match="not an SQLite database"):
        store.perform_sync(Maintain(lease=LEASE))
    store.close()
