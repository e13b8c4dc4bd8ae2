"""Notes and children beside transactions of others, who hold rows and keys (D2, D4, F3)."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.adapters.conftest import LEASE, outcome
from tests.adapters.postgres_meanwhile import Unfinished, holding, wait_until_blocked
from tests.adapters.together import together

from tidemill.adapters.postgres import PostgresStore
from tidemill.store.complete import Complete
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.values.bounds import Bounds
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import Answer
from tidemill.values.states import JobState

KEY = "k"


@pytest.fixture
def running(mill):
    """Two jobs that run under one live worker."""
    worker = mill.register()
    mill.enqueue(mill.job(), mill.job())
    return mill.claim(worker)


def note_of(mill, job):
    said = (Progress(0.5, "half", mill.clock()), (LogLine(1, mill.clock(), "a stone"),))
    return Note(job_id=job.id, attempt=job.attempt, progress=said[0], lines=said[1])


def test_a_note_of_a_row_that_others_hold_is_busy_and_its_neighbour_is_taken(
    mill, postgres_url, running
):
    held, free = running
    notes = TakeNotes(worker=held.worker, notes=(note_of(mill, held), note_of(mill, free)))
    with holding(postgres_url, held.id):
        said = mill.store.perform_sync(notes)
    assert [each.answer for each in said] == [Answer.BUSY, Answer.APPLIED]
    assert mill.get(held.id).record.progress is None
    assert len(mill.store.perform_sync(ReadLog(free.id)).lines) == 1
    said = mill.store.perform_sync(notes)
    assert [each.answer for each in said] == [Answer.APPLIED, Answer.APPLIED]


def test_a_note_beside_an_open_completion_is_busy_and_stale_once_that_has_committed(
    mill, postgres_url, running
):
    job, _ = running
    told = Complete(job_id=job.id, attempt=job.attempt, worker=job.worker)
    completing = Unfinished(postgres_url, mill.store, told)
    notes = TakeNotes(worker=job.worker, notes=(note_of(mill, job),))
    (said,) = mill.store.perform_sync(notes)
    assert said.answer is Answer.BUSY
    completing.end("COMMIT")
    (said,) = mill.store.perform_sync(notes)
    assert said.answer is Answer.STALE


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_child_waits_for_whoever_is_about_to_take_its_key_and_is_right_either_way(
    mill, postgres_url, watcher, running, how
):
    job, _ = running
    child, rival = mill.job(idempotency_key=KEY), mill.job(idempotency_key=KEY)
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((rival,)))
    success = outcome(job, children=(child,))
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mill.report, job.worker, success)
        wait_until_blocked(watcher)
        enqueuing.end(how)
        (said,) = waiting.result()
    assert (said.answer, said.state) == (Answer.APPLIED, JobState.SUCCEEDED)
    assert (mill.get(child.id) is None) is (how == "COMMIT")
    assert (mill.get(rival.id) is None) is (how == "ROLLBACK")


def test_an_end_whose_childs_key_stays_locked_is_busy_and_its_neighbours_are_applied(
    mill, postgres_url, running
):
    job, neighbour = running
    child, plain = mill.job(idempotency_key=KEY), mill.job()
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    outcomes = (
        outcome(job, children=(child,), lines=(LogLine(1, mill.clock(), "a stone"),)),
        outcome(neighbour, children=(plain,)),
    )
    said = mill.report(job.worker, *outcomes)
    assert [each.answer for each in said] == [Answer.BUSY, Answer.APPLIED]
    assert mill.get(job.id).record.state is JobState.RUNNING
    assert mill.get(job.id).log == ()
    assert mill.get(plain.id) is not None
    enqueuing.end("ROLLBACK")
    said = mill.report(job.worker, *outcomes)
    assert [each.answer for each in said] == [Answer.APPLIED, Answer.ALREADY_APPLIED]
    assert mill.get(child.id) is not None


def test_what_comes_after_an_end_that_was_put_off_is_done_in_the_same_exchange(mill, postgres_url):
    worker = mill.register()
    mill.enqueue(mill.job())
    (job,) = mill.claim(worker)
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    (waiting,) = mill.enqueue(mill.job())
    success = outcome(job, children=(mill.job(idempotency_key=KEY),))
    told = Exchange(worker=worker, outcomes=(success,), claim=mill.request())
    reply = mill.store.perform_sync(told)
    assert reply.reported[0].answer is Answer.BUSY
    assert [each.id for each in reply.claimed] == [waiting.job_id]
    enqueuing.end("ROLLBACK")


def complete(mill, jobs, *children):
    for job, child in zip(jobs, children, strict=True):
        told = Complete(job_id=job.id, attempt=job.attempt, worker=job.worker, children=(child,))
        mill.store.perform_sync(told)


def test_a_completion_whose_childs_key_stays_locked_keeps_no_other_from_being_settled(
    mill, postgres_url, running, caplog
):
    job, other = running
    child, plain = mill.job(idempotency_key=KEY), mill.job()
    complete(mill, running, child, plain)
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    for _ in range(2):
        mill.maintain()
    assert mill.get(plain.id) is not None
    assert not mill.get(other.id).record.unsettled
    assert (mill.get(child.id), mill.get(job.id).record.unsettled) == (None, True)
    assert caplog.text.count(f"that the completion of job {job.id} left cannot be stored yet") == 1
    enqueuing.end("ROLLBACK")
    assert mill.maintain().settled == 1
    assert mill.get(child.id) is not None


def test_the_report_of_a_completion_does_not_wait_for_its_childs_key(mill, postgres_url, running):
    complete(mill, running, mill.job(idempotency_key=KEY), mill.job())
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    said = mill.report(running[0].worker, *(outcome(job, in_transaction=True) for job in running))
    assert {each.answer for each in said} == {Answer.ALREADY_APPLIED}
    enqueuing.end("ROLLBACK")
    mill.maintain()
    assert not any(mill.get(job.id).record.unsettled for job in running)


@pytest.fixture
def forbidding(postgres_url):
    """A database whose owner lets no job into one queue."""
    rule = "ALTER TABLE tidemill.jobs ADD CONSTRAINT rule CHECK (queue <> 'forbidden')"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(rule)
        yield
        connection.execute("ALTER TABLE tidemill.jobs DROP CONSTRAINT rule")


@pytest.mark.usefixtures("forbidding")
def test_a_child_that_the_database_refuses_keeps_no_other_completion_from_being_settled(
    mill, running, caplog
):
    bad, plain = mill.job(queue="forbidden"), mill.job()
    complete(mill, running, bad, plain)
    said = mill.report(running[0].worker, *(outcome(job, in_transaction=True) for job in running))
    assert {each.answer for each in said} == {Answer.ALREADY_APPLIED}
    mill.maintain()
    assert (mill.get(plain.id) is None, mill.get(bad.id)) == (False, None)
    assert "violates check constraint" in caplog.text


def test_a_child_is_stored_by_a_sweep_whose_bounds_are_narrower_than_its_own(
    mill, postgres_url, running, clock
):
    large = mill.job(payload=b" " * 1_000)
    complete(mill, running, large, mill.job())
    narrow = PostgresStore(postgres_url, clock=clock, hints=False, bounds=Bounds(payload_bytes=10))
    assert narrow.perform_sync(Maintain(lease=LEASE)).settled == len(running)
    narrow.close()
    assert mill.get(large.id) is not None


def test_workers_whose_children_take_each_others_keys_all_succeed(mill):
    """Each waits for a key that the other frees in the same moment: a deadlock that is retried."""
    worker = mill.register()
    number = 8
    mill.enqueue(*(mill.job(idempotency_key=f"k{n}") for n in range(number)))
    jobs = mill.claim(worker)
    assert len(jobs) == number

    def part(n):
        key = f"k{(n + 1) % number}"
        return mill.report(worker, outcome(jobs[n], children=(mill.job(idempotency_key=key),)))

    answers = together(number, part)
    assert {said.answer for (said,) in answers} == {Answer.APPLIED}
    assert all(mill.get(job.id).record.state is JobState.SUCCEEDED for job in jobs)
