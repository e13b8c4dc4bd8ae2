"""Rows that others hold, and what is under way elsewhere (C1, C6, D4, F3)."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.adapters.conftest import LEASE
from tests.adapters.postgres_meanwhile import (
    Unfinished,
    holding,
    rest_of,
    wait_until,
    wait_until_blocked,
)
from tests.adapters.together import together
from tests.postgres.servers import in_database

from tidemill.adapters.postgres import PostgresStore
from tidemill.drivers.postgres_session import Limits, beginnings
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.sql.migrations import migrations
from tidemill.sql.programs.registry import SNAPSHOTS, program_for
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.monitor import CountJobs, GetJob, ListQueues, ListWorkers
from tidemill.store.operators import Cancel, Requeue
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_duplicate_waits_for_the_winner_and_answers_rightly_either_way(
    mill, postgres_url, watcher, how
):
    winner, loser = mill.job(idempotency_key="k"), mill.job(idempotency_key="k")
    first = Unfinished(postgres_url, mill.store, Enqueue((winner,)))
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mill.enqueue, loser)
        wait_until_blocked(watcher)
        assert not waiting.done()
        first.end(how)
        (answer,) = waiting.result()
    if how == "COMMIT":
        assert (answer.job_id, answer.deduplicated) == (winner.id, True)
        assert mill.get(loser.id) is None
    else:
        assert (answer.job_id, answer.deduplicated) == (loser.id, False)
        assert mill.get(winner.id) is None


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_duplicate_in_a_transaction_of_its_own_needs_no_second_try(
    mill, postgres_url, watcher, how
):
    """As in a user's transaction, where nothing is retried (clause F4)."""
    winner, loser = mill.job(idempotency_key="k"), mill.job(idempotency_key="k")
    first = Unfinished(postgres_url, mill.store, Enqueue((winner,)))
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(Unfinished, postgres_url, mill.store, Enqueue((loser,)))
        wait_until_blocked(watcher)
        first.end(how)
        second = waiting.result()
    second.end("COMMIT")
    (answer,) = second.answer
    assert answer.job_id == (winner.id if how == "COMMIT" else loser.id)
    assert answer.deduplicated is (how == "COMMIT")


def test_a_duplicate_in_a_batch_whose_first_lost_follows_the_winner(mill, postgres_url, watcher):
    winner = mill.job(idempotency_key="k")
    batch = (mill.job(idempotency_key="k"), mill.job(), mill.job(idempotency_key="k"))
    first = Unfinished(postgres_url, mill.store, Enqueue((winner,)))
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mill.enqueue, *batch)
        wait_until_blocked(watcher)
        first.end("COMMIT")
        answers = waiting.result()
    assert [each.job_id for each in answers] == [winner.id, batch[1].id, winner.id]
    assert [each.deduplicated for each in answers] == [True, False, True]


def test_a_requeue_that_meets_the_key_of_an_enqueue_under_way_answers_key_held(
    mill, postgres_url, watcher, outcome
):
    mill.enqueue(mill.job(idempotency_key="k"))
    worker = mill.register()
    (job,) = mill.claim(worker)
    mill.report(worker, outcome(job, Verdict.DISCARDED))
    winner = mill.job(idempotency_key="k")
    first = Unfinished(postgres_url, mill.store, Enqueue((winner,)))
    request = Requeue(job_ids=(job.id,), actor="a", action=mill.fresh())
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mill.store.perform_sync, request)
        wait_until_blocked(watcher)
        first.end("COMMIT")
        (answer,) = waiting.result()
    assert (answer.effect, answer.other) == ("key-held", winner.id)


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.FAILED])
def test_a_row_that_others_hold_is_busy_and_its_neighbours_are_applied(
    mill, postgres_url, outcome, verdict
):
    mill.enqueue(*[mill.job() for _ in range(3)])
    worker = mill.register()
    jobs = mill.claim(worker)
    reports = [outcome(job, verdict) for job in jobs]
    with holding(postgres_url, jobs[1].id):
        answers = mill.report(worker, *reports)
        assert [each.answer for each in answers] == [Answer.APPLIED, Answer.BUSY, Answer.APPLIED]
        assert mill.get(jobs[1].id).record.state is JobState.RUNNING
        (alone,) = mill.report(worker, reports[1])
        assert alone.answer is Answer.BUSY
    (answer,) = mill.report(worker, reports[1])
    assert answer.answer is Answer.APPLIED


def test_a_busy_row_of_another_attempt_is_busy_and_not_stale(mill, postgres_url, outcome):
    mill.enqueue(mill.job())
    worker = mill.register()
    (job,) = mill.claim(worker)
    (report,) = [outcome(job)]
    mill.report(worker, outcome(job, Verdict.RELEASED))
    with holding(postgres_url, job.id):
        (answer,) = mill.report(worker, report)
        assert answer.answer is Answer.BUSY
    (answer,) = mill.report(worker, report)
    assert answer.answer is Answer.STALE


def test_a_cancel_request_that_lands_during_a_report_costs_it_nothing(mill, postgres_url, outcome):
    mill.enqueue(mill.job())
    worker = mill.register()
    (job,) = mill.claim(worker)
    mill.store.perform_sync(Cancel(job_ids=(job.id,), actor="a", action=mill.fresh()))
    (answer,) = mill.report(worker, outcome(job))
    assert (answer.answer, answer.state) == (Answer.APPLIED, JobState.SUCCEEDED)


def test_a_cancel_waits_for_whoever_holds_the_row_and_then_judges_it(mill, postgres_url, watcher):
    mill.enqueue(mill.job())
    (job,) = mill.claim(mill.register())
    request = Cancel(job_ids=(job.id,), actor="a", action=mill.fresh())
    with holding(postgres_url, job.id) as other, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mill.store.perform_sync, request)
        wait_until(watcher, "wait_event = 'PgSleep'")  # until it looks again
        other.execute("UPDATE tidemill.jobs SET state = 4, finished_at = now()")
        other.commit()
        (answer,) = waiting.result()
    assert answer.effect == "unchanged"
    assert mill.get(job.id).record.cancel_requested is None


@pytest.mark.parametrize("overtaken_by", ["the end of the lease", "a sweep"])
def test_a_beat_that_was_overtaken_renews_nothing(mill, postgres_url, clock, overtaken_by):
    worker = mill.register()
    site = mill.store._site
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        executor = PsycopgExecutor(connection, site.catalogue, {True: "BEGIN"}, clock)
        program = program_for(Beat(worker=worker, lease=LEASE), site.env)
        step = program.send(executor.step(next(program)))
        if overtaken_by == "a sweep":
            connection.execute("UPDATE tidemill.workers SET lapsed_at = lease_expires_at")
        else:
            clock.advance(LEASE)
        assert not rest_of(program, executor, step).live
        (mark,) = connection.execute("SELECT lapsed_at FROM tidemill.workers").fetchone()
        assert mark is not None


def test_the_sweep_passes_over_a_row_that_others_hold_and_takes_it_next_time(
    mill, postgres_url, clock
):
    mill.enqueue(*[mill.job() for _ in range(3)])
    jobs = mill.claim(mill.register())
    clock.advance(LEASE)
    with holding(postgres_url, jobs[0].id):
        assert {each.job_id for each in mill.maintain().lapsed} == {jobs[1].id, jobs[2].id}
    assert {each.job_id for each in mill.maintain().lapsed} == {jobs[0].id}


def test_a_claim_passes_over_rows_that_others_hold(mill, postgres_url):
    jobs = [mill.job() for _ in range(3)]
    mill.enqueue(*jobs)
    with holding(postgres_url, jobs[0].id):
        assert [job.id for job in mill.claim(mill.register())] == [jobs[1].id, jobs[2].id]


def test_a_workers_row_is_locked_by_nobody_while_it_reports(mill, postgres_url, outcome):
    mill.enqueue(mill.job())
    worker = mill.register()
    (job,) = mill.claim(worker)
    with psycopg.connect(postgres_url) as heart:
        heart.execute("UPDATE tidemill.workers SET slots = slots WHERE id = %s", (worker,))
        (answer,) = mill.report(worker, outcome(job))
        assert answer.answer is Answer.APPLIED


def test_migrators_at_once_apply_each_step_once(postgres_18_server, worker_id):
    name = f"tidemill_migrators_{worker_id}"
    with psycopg.connect(postgres_18_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
        url = in_database(postgres_18_server, name)
        opened = [PostgresStore(url) for _ in range(6)]
        applied = together(6, lambda n: opened[n].migrate())
        each_step = [step.name for step in migrations("postgres")]
        assert sorted(step for steps in applied for step in steps) == each_step
        assert {store.perform_sync(CountJobs()) for store in opened} == {()}
        for store in opened:
            store.close()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_look_at_a_job_sees_one_state_of_it(mill, postgres_url, outcome):
    worker = mill.register()
    mill.enqueue(mill.job())
    (job,) = mill.claim(worker)
    site = mill.store._site
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        executor = PsycopgExecutor(connection, site.catalogue, beginnings(Limits()), site.clock)
        executor.begin(write=False)
        program = program_for(GetJob(job.id), site.env)
        rows = executor.step(next(program))
        mill.report(worker, outcome(job, tags=frozenset({Tag("done")})))
        seen = rest_of(program, executor, program.send(rows))
        executor.commit()
    assert (seen.record.state, seen.tags) == (JobState.RUNNING, frozenset())
    assert mill.get(job.id).tags == {Tag("done")}


@pytest.mark.parametrize("kind", [GetJob, ListQueues, ListWorkers])
def test_what_reads_in_several_statements_is_one_transaction(kind):
    assert kind in SNAPSHOTS
