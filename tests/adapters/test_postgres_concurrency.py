"""Many at once, on connections of their own, and rows that others hold (C1, C6, D4, F3)."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier

import psycopg
import pytest
from tests.postgres.servers import in_database

from tidemill.adapters.postgres import PostgresStore
from tidemill.drivers.postgres_session import Limits, beginnings
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.sql.migrations import migrations
from tidemill.sql.programs.registry import SNAPSHOTS, program_for
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain
from tidemill.store.monitor import CountJobs, GetJob, ListQueues, ListWorkers
from tidemill.store.operators import Cancel, Requeue
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

LEASE = timedelta(seconds=60)


def together(number, part):
    """Run `part(n)` in `number` threads that start at one barrier; answer what each answered."""
    barrier = Barrier(number)

    def run(n):
        barrier.wait()
        return part(n)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


@pytest.fixture
def stores(postgres_url, clock):
    """Eight stores on the database, as eight processes would have them."""
    opened = [PostgresStore(postgres_url, clock=clock, hints=False) for _ in range(8)]
    yield opened
    for each in opened:
        each.close()


@pytest.fixture
def watcher(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def wait_until_blocked(watcher):
    """Return once some session of this database waits for a lock."""
    wait_until(watcher, "wait_event_type = 'Lock'")


def wait_until(watcher, holds):
    """Return once this is said of some session of this database."""
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {holds}"
    while not watcher.execute(asked).fetchone()[0]:
        watcher.execute("SELECT 1 FROM pg_backend_pid()")


@contextmanager
def holding(url, job_id):
    """Another transaction that holds a job's row."""
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM tidemill.jobs WHERE id = %s FOR UPDATE", (job_id,))
        yield other


class Unfinished:
    """A request performed on a connection of a user's, whose transaction is still open."""

    def __init__(self, url, store, operation):
        self.connection = psycopg.connect(url, autocommit=True)
        site = store._site
        executor = PsycopgExecutor(
            self.connection, site.catalogue, {True: "BEGIN", False: "BEGIN"}, site.clock
        )
        executor.begin(write=True)
        program = program_for(operation, site.env)
        self.answer = rest_of(program, executor, next(program))

    def end(self, how):
        self.connection.execute(how)
        self.connection.close()


def rest_of(program, executor, step):
    """Run a program on from a step, and answer its value."""
    try:
        while True:
            step = program.send(executor.step(step))
    except StopIteration as stop:
        return stop.value


def test_eight_claimers_never_share_a_job(mill, stores):
    mill.enqueue(*[mill.job() for _ in range(400)])
    workers = [mill.register() for _ in stores]

    def claim_all(n):
        ask = Exchange(worker=workers[n], claim=mill.request(limit=7))
        found = []
        while claimed := stores[n].perform_sync(ask).claimed:
            found += [job.id for job in claimed]
        return found

    claimed = Counter(job for found in together(8, claim_all) for job in found)
    assert len(claimed) == 400
    assert set(claimed.values()) == {1}


def test_coroutines_on_one_store_never_share_a_job(mill):
    mill.enqueue(*[mill.job() for _ in range(300)])
    workers = [mill.register() for _ in range(6)]

    async def claim_all(worker):
        ask = Exchange(worker=worker, claim=mill.request(limit=5))
        found = []
        while claimed := (await mill.store.perform(ask)).claimed:
            found += [job.id for job in claimed]
        return found

    async def all_at_once():
        return await asyncio.gather(*map(claim_all, workers))

    claimed = Counter(job for found in asyncio.run(all_at_once()) for job in found)
    assert len(claimed) == 300
    assert set(claimed.values()) == {1}


def test_every_job_finishes_once_whatever_workers_race_for_it(mill, stores, outcome):
    mill.enqueue(*[mill.job() for _ in range(200)])
    workers = [mill.register() for _ in stores]

    def work(n):
        done, reports = 0, ()
        while True:
            ask = Exchange(worker=workers[n], outcomes=reports, claim=mill.request(limit=5))
            answer = stores[n].perform_sync(ask)
            done += sum(each.answer is Answer.APPLIED for each in answer.reported)
            again = {each.job_id for each in answer.reported if each.answer is Answer.BUSY}
            reports = tuple(each for each in reports if each.job_id in again)
            reports += tuple(outcome(job) for job in answer.claimed)
            if not reports:
                return done

    assert sum(together(8, work)) == 200
    (count,) = mill.store.perform_sync(CountJobs())
    assert (count.state, count.count) == (JobState.SUCCEEDED, 200)


def test_eight_sweepers_lapse_each_attempt_once(mill, stores, clock):
    mill.enqueue(*[mill.job() for _ in range(100)])
    mill.claim(mill.register(), limit=100)
    clock.advance(LEASE)
    sweeps = together(8, lambda n: stores[n].perform_sync(Maintain(lease=LEASE)).lapsed)
    lapsed = Counter((each.job_id, each.attempt) for sweep in sweeps for each in sweep)
    assert len(lapsed) == 100
    assert set(lapsed.values()) == {1}
    assert {mill.get(job).record.lapses for job, _attempt in lapsed} == {1}


def test_enqueues_of_one_key_at_once_yield_one_job(mill, stores):
    jobs = [mill.job(idempotency_key="k") for _ in stores]
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((jobs[n],)))[0])
    assert len({answer.job_id for answer in answers}) == 1
    assert sorted(answer.deduplicated for answer in answers) == [False] + [True] * 7
    (count,) = mill.store.perform_sync(CountJobs())
    assert count.count == 1


def test_batches_of_the_same_keys_in_other_orders_never_lock_each_other_out(mill, stores):
    keys = [f"k{n}" for n in range(50)]
    orders = [keys, keys[::-1]] * 4
    requests = [Enqueue(tuple(mill.job(idempotency_key=key) for key in order)) for order in orders]
    answers = together(8, lambda n: stores[n].perform_sync(requests[n]))
    assert len({each.job_id for answer in answers for each in answer}) == 50
    fresh = [each for answer in answers for each in answer if not each.deduplicated]
    assert len(fresh) == 50


def test_one_request_sent_many_times_at_once_is_stored_once(mill, stores):
    job = mill.job()
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((job,)))[0])
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 7


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


def test_one_action_sent_many_times_at_once_is_done_once(mill, stores):
    job = mill.job()
    mill.enqueue(job)
    request = Cancel(job_ids=(job.id,), actor="a", action=mill.fresh())
    answers = together(8, lambda n: stores[n].perform_sync(request))
    assert {each[0].effect for each in answers} == {"done"}


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
