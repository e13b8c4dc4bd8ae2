"""A completion in a handler's open transaction: its lock on the row is the fence (D4, D8)."""

import psycopg
import pytest
from tests.adapters.conftest import LEASE
from tests.adapters.postgres_meanwhile import Unfinished, wait_until_blocked
from tests.adapters.together import together

from tidemill.store.complete import Complete
from tidemill.store.operators import Cancel
from tidemill.values.operators import Effect
from tidemill.values.outcomes import Answer, ErrorInfo, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

BROKEN = ErrorInfo("ValueError", "cracked")
AT_ONCE = Retry.immediate(max_attempts=9)
FINE = Tag("fine")


@pytest.fixture
def claimed(mill):
    """A job that runs under a live worker."""
    worker = mill.register()
    mill.enqueue(mill.job(retry=AT_ONCE))
    (job,) = mill.claim(worker)
    return job


@pytest.fixture
def completing(mill, claimed, postgres_url):
    """The same job, completed in a transaction that is still open."""
    told = Complete(
        job_id=claimed.id, attempt=claimed.attempt, worker=claimed.worker, tags=frozenset({FINE})
    )
    transaction = Unfinished(postgres_url, mill.store, told)
    assert transaction.answer.answer is Answer.APPLIED
    yield transaction
    transaction.connection.close()


def report(mill, job, outcome):
    told = outcome(job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    (reported,) = mill.report(job.worker, told)
    return reported


def test_its_report_is_busy_until_the_transaction_ends(mill, claimed, completing, outcome):
    assert report(mill, claimed, outcome).answer is Answer.BUSY
    completing.end("COMMIT")
    assert report(mill, claimed, outcome).answer is Answer.ALREADY_APPLIED
    job = mill.get(claimed.id)
    assert (job.record.state, job.tags) == (JobState.SUCCEEDED, {FINE})


def test_a_rolled_back_one_leaves_the_verdict_to_the_report(mill, claimed, completing, outcome):
    completing.end("ROLLBACK")
    reported = report(mill, claimed, outcome)
    assert (reported.answer, reported.state) == (Answer.APPLIED, JobState.READY)


def test_one_whose_connection_is_cut_is_rolled_back(mill, claimed, completing, outcome):
    completing.connection.close()
    while (reported := report(mill, claimed, outcome)).answer is Answer.BUSY:
        pass  # until the server has noticed
    assert (reported.answer, reported.state) == (Answer.APPLIED, JobState.READY)


def test_a_lapse_waits_for_the_transaction_and_its_commit_stands(mill, claimed, completing):
    mill.clock.advance(LEASE)
    assert mill.maintain().lapsed == ()
    completing.end("COMMIT")
    assert mill.maintain().lapsed == ()
    assert mill.get(claimed.id).record.state is JobState.SUCCEEDED


def test_a_lapse_waits_for_the_transaction_and_comes_after_its_rollback(mill, claimed, completing):
    mill.clock.advance(LEASE)
    assert mill.maintain().lapsed == ()
    completing.end("ROLLBACK")
    (lapsed,) = mill.maintain().lapsed
    assert (lapsed.job_id, lapsed.state) == (claimed.id, JobState.READY)


def test_the_jobs_beside_it_lapse_meanwhile(mill, claimed, completing):
    mill.enqueue(mill.job())
    (beside,) = mill.claim(claimed.worker)
    mill.clock.advance(LEASE)
    assert [each.job_id for each in mill.maintain().lapsed] == [beside.id]


def test_one_that_meets_the_sweep_waits_for_it_and_is_stale(
    mill, claimed, postgres_url, postgres_18
):
    """The sweep was first: its transaction holds the row."""
    with psycopg.connect(postgres_18, autocommit=True) as watcher:
        other = psycopg.connect(postgres_url)
        other.execute(
            "UPDATE tidemill.jobs SET state = 1, worker_id = NULL WHERE id = %s", (claimed.id,)
        )

        def part(n):
            if n:
                told = Complete(job_id=claimed.id, attempt=claimed.attempt, worker=claimed.worker)
                return Unfinished(postgres_url, mill.store, told)
            wait_until_blocked(watcher)
            other.commit()
            other.close()
            return None

        _, transaction = together(2, part)
        transaction.end("ROLLBACK")
    assert transaction.answer.answer is Answer.STALE


def test_an_operator_who_cancels_it_is_told_that_it_is_busy(mill, claimed, completing):
    (result,) = cancel(mill, claimed.id)
    assert (result.effect, result.state) == (Effect.BUSY, JobState.RUNNING)
    completing.end("COMMIT")
    (result,) = cancel(mill, claimed.id)
    assert (result.effect, result.state) == (Effect.UNCHANGED, JobState.SUCCEEDED)


def test_it_keeps_no_action_from_the_jobs_beside_it(mill, claimed, completing):
    others = [mill.job(), mill.job()]
    mill.enqueue(*others)
    first, busy, last, none = cancel(mill, others[0].id, claimed.id, others[1].id, mill.fresh())
    assert [first.effect, last.effect] == [Effect.DONE, Effect.DONE]
    assert (busy.effect, none.effect) == (Effect.BUSY, Effect.NOT_FOUND)
    assert {mill.get(each.id).record.state for each in others} == {JobState.CANCELLED}


def cancel(mill, *job_ids):
    return mill.store.perform_sync(Cancel(job_ids=job_ids, actor="a", action=mill.fresh()))


def test_two_sweeps_at_once_settle_it_once(mill, claimed, completing):
    completing.end("COMMIT")
    assert sum(each.settled for each in together(2, lambda _: mill.maintain())) == 1
    assert mill.get(claimed.id).tags == {FINE}


def test_the_sweep_passes_over_one_that_is_being_settled(mill, claimed, completing, postgres_url):
    completing.end("COMMIT")
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM tidemill.jobs WHERE id = %s FOR UPDATE", (claimed.id,))
        assert mill.maintain().settled == 0
    assert mill.maintain().settled == 1
