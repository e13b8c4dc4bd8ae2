"""Notes and children beside transactions of others, who hold rows and keys (D2, D4, F3)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.adapters.conftest import Bench, outcome
from tests.adapters.postgres_meanwhile import Unfinished, holding, wait_until_blocked
from tests.adapters.together import together

from tidemill.adapters.postgres import PostgresStore
from tidemill.errors import StoreUnavailable
from tidemill.store.complete import Complete
from tidemill.store.enqueue import Enqueue
from tidemill.store.notes import ReadLog, TakeNotes
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


@pytest.fixture
def hurried(postgres_url, clock):
    """A store on the same tables that waits for no lock for long."""
    store = PostgresStore(
        postgres_url, clock=clock, hints=False, lock_timeout=timedelta(milliseconds=30)
    )
    yield Bench(store, clock)
    store.close()


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


def test_a_key_that_stays_locked_ends_the_exchange_and_nothing_of_it_is_written(
    mill, hurried, postgres_url, running
):
    job, neighbour = running
    child = mill.job(idempotency_key=KEY)
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    outcomes = (outcome(job, children=(child,)), outcome(neighbour))
    with pytest.raises(StoreUnavailable):
        hurried.report(job.worker, *outcomes)
    assert mill.get(job.id).record.state is JobState.RUNNING
    assert mill.get(neighbour.id).record.state is JobState.RUNNING
    enqueuing.end("ROLLBACK")
    said = hurried.report(job.worker, *outcomes)
    assert [each.answer for each in said] == [Answer.APPLIED, Answer.APPLIED]
    assert mill.get(child.id) is not None


def test_a_completion_whose_childs_key_stays_locked_keeps_no_other_from_being_settled(
    mill, hurried, postgres_url, running, caplog
):
    job, other = running
    child, plain = mill.job(idempotency_key=KEY), mill.job()
    for each, left in ((job, child), (other, plain)):
        told = Complete(job_id=each.id, attempt=each.attempt, worker=each.worker, children=(left,))
        mill.store.perform_sync(told)
    enqueuing = Unfinished(postgres_url, mill.store, Enqueue((mill.job(idempotency_key=KEY),)))
    assert hurried.maintain().settled == 1
    assert "What follows from the completion of" in caplog.text
    assert mill.get(plain.id) is not None
    assert (mill.get(child.id), mill.get(job.id).record.unsettled) == (None, True)
    enqueuing.end("ROLLBACK")
    assert hurried.maintain().settled == 1
    assert mill.get(child.id) is not None


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
