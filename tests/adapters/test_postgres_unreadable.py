"""Rows changed by SQL: what PostgreSQL's types let through stops nothing (P15)."""

import psycopg
import pytest
from tests.adapters.conftest import LEASE

from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain
from tidemill.store.monitor import CountJobs, ListJobs, ListQueues
from tidemill.store.operators import Cancel, Requeue
from tidemill.values import causes
from tidemill.values.ids import ActionId
from tidemill.values.operators import Effect
from tidemill.values.outcomes import ErrorInfo, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

MOST = 2**63 - 1


@pytest.fixture
def alter(postgres_url):
    """Change rows behind everyone's back."""

    def execute(sql, *values):
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            assert connection.execute(sql, values).rowcount

    return execute


def set_job(alter, job, wrong):
    alter(f"UPDATE tidemill.jobs SET {wrong} WHERE id = %s", job.id)


@pytest.fixture(params=["worker", "caller"])
def claim(request, mill):
    """Claim through each of the two drivers."""

    def by_caller(worker, limit=10):
        exchange = Exchange(worker=worker, claim=mill.request(limit))
        return mill.store.perform_sync(exchange).claimed

    def by_worker(worker, limit=10):
        import asyncio

        exchange = Exchange(worker=worker, claim=mill.request(limit))
        return asyncio.run(mill.store.perform(exchange)).claimed

    return by_caller if request.param == "caller" else by_worker


@pytest.mark.parametrize(
    "wrong",
    [
        "retry = '{bad'",
        "retry = '7'",
        "retry = '{\"max_attempts\": 0}'",
        "attempt = -1",
        f"attempt = {MOST}",
        f"lapses = {MOST}, lapses_base = -7",
    ],
)
def test_a_ready_row_that_cannot_be_read_is_quarantined_and_the_claim_goes_on(
    mill, alter, claim, wrong
):
    good, bad = mill.job(priority=1), mill.job(priority=2)
    mill.enqueue(good, bad)
    set_job(alter, bad, wrong)
    worker = mill.register()
    assert [job.id for job in claim(worker)] == [good.id]
    found = mill.get(bad.id)
    assert (found.state, found.cause) == (JobState.QUARANTINED, causes.UNREADABLE)
    assert wrong.split()[0] in found.attempts[-1].error.message
    assert claim(worker) == ()


@pytest.mark.parametrize(
    "wrong", ["due_at = 'infinity'", "due_at = '-infinity'", "created_at = '100000-01-01'",
              "created_at = '0044-03-15 BC'", "not_after = '100000-01-01'"],
)  # fmt: skip
def test_an_instant_beyond_the_calendar_is_its_end_and_stops_nothing(mill, alter, claim, wrong):
    good, bad = mill.job(), mill.job()
    mill.enqueue(good, bad)
    set_job(alter, bad, wrong)
    assert {job.id for job in claim(mill.register())} == {good.id, bad.id}
    assert len(mill.store.perform_sync(ListJobs()).jobs) == 2


def test_counters_beyond_32_bits_are_counted_on(mill, alter, claim, outcome):
    job = mill.job(retry=Retry.immediate(max_attempts=2**40))
    mill.enqueue(job)
    many = 2**35
    set_job(
        alter, job, f"attempt = {many}, failures = {many}, lapses = {many}, lapses_base = {many}"
    )
    worker = mill.register()
    (claimed,) = claim(worker)
    mill.report(worker, outcome(claimed, Verdict.FAILED))
    found = mill.get(job.id).record
    assert (found.attempt, found.failures, found.state) == (many + 1, many + 1, JobState.READY)


def test_a_payload_that_is_no_json_is_handed_over_as_it_is(mill, alter, claim):
    """Its worker decodes it, and quarantines what does not decode."""
    job = mill.job()
    mill.enqueue(job)
    set_job(alter, job, r"payload = '\x00ff'")
    (claimed,) = claim(mill.register())
    assert claimed.payload == b"\0\xff"


def test_running_rows_that_cannot_be_read_are_quarantined_and_hide_no_others(mill, alter, clock):
    jobs = [mill.job() for _ in range(4)]
    mill.enqueue(*jobs)
    mill.claim(mill.register())
    for job, wrong in zip(jobs, ["retry = '{'", f"failures = {MOST}", "lapses = -1"], strict=False):
        set_job(alter, job, wrong)
    clock.advance(LEASE)
    rounds = [mill.store.perform_sync(Maintain(lease=LEASE, limit=3)) for _ in range(2)]
    assert [each.more for each in rounds] == [True, False]
    assert [each.job_id for done in rounds for each in done.lapsed] == [jobs[3].id]
    ended = [mill.get(job.id) for job in jobs[:3]]
    assert {job.cause for job in ended} == {causes.UNREADABLE}


def test_a_running_row_without_a_worker_is_known_to_nobody_and_costs_no_heartbeat(mill, alter):
    kept, lost = mill.job(), mill.job()
    mill.enqueue(kept, lost)
    worker = mill.register()
    mill.claim(worker)
    set_job(alter, lost, "attempt = -1")
    reply = mill.store.perform_sync(Beat(worker=worker, lease=LEASE))
    assert [pair.job_id for pair in reply.running] == [kept.id]


def test_codes_that_nobody_knows_are_listed_counted_and_flagged(mill, alter):
    odd, held, plain = mill.job(), mill.job(), mill.job()
    mill.enqueue(odd, held, plain)
    set_job(alter, odd, "state = 99")
    set_job(alter, held, "held = 7")
    listed = {job.id: job for job in mill.store.perform_sync(ListJobs()).jobs}
    assert [listed[job.id].unreadable for job in (odd, held, plain)] == [("state",), ("held",), ()]
    assert listed[odd.id].state is JobState.QUARANTINED
    assert sum(each.count for each in mill.store.perform_sync(CountJobs())) == 3
    assert mill.store.perform_sync(ListQueues())
    act = {"actor": "ada", "job_ids": (odd.id,)}
    (refused,) = mill.store.perform_sync(Requeue(**act, action=ActionId(mill.fresh())))
    (ended,) = mill.store.perform_sync(Cancel(**act, action=ActionId(mill.fresh())))
    assert (refused.effect, ended.effect) == (Effect.UNREADABLE, Effect.DONE)
    assert mill.get(odd.id).state is JobState.CANCELLED


def test_an_attempts_record_with_an_unknown_verdict_is_shown_and_flagged(mill, alter, outcome):
    mill.enqueue(mill.job())
    worker = mill.register()
    (job,) = mill.claim(worker)
    mill.report(worker, outcome(job, Verdict.FAILED, error=ErrorInfo("app.Broken", "no")))
    alter("UPDATE tidemill.attempts SET verdict = 99")
    (attempt,) = mill.get(job.id).attempts
    assert attempt.unreadable == ("verdict",)
