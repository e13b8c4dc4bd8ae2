"""Many at once, on connections of their own: the same stories on every database."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE
from tests.adapters.together import together

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Deregister, Maintain
from tidemill.store.monitor import CountJobs
from tidemill.store.operators import Cancel
from tidemill.values.outcomes import Answer
from tidemill.values.states import JobState


def on_sqlite(path, clock):
    return SqliteStore(path, clock=clock, busy_timeout=timedelta(seconds=60))


def on_postgres(url, clock):
    return PostgresStore(url, clock=clock, hints=False)


# How a store is opened, where, and who has short words for its requests.
KINDS = {"sqlite": (on_sqlite, "path", "bench"), "postgres": (on_postgres, "postgres_url", "mill")}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def teller(kind, request):
    return request.getfixturevalue(kind[2])


@pytest.fixture
def stores(kind, teller, request, clock):
    """Eight stores on the database, as eight processes would have them."""
    opened = [kind[0](request.getfixturevalue(kind[1]), clock) for _ in range(8)]
    yield opened
    for each in opened:
        each.close()


def test_eight_claimers_never_share_a_job(teller, stores):
    teller.enqueue(*[teller.job() for _ in range(400)])
    workers = [teller.register() for _ in stores]

    def claim_all(n):
        ask = Exchange(worker=workers[n], claim=teller.request(limit=7))
        found = []
        while claimed := stores[n].perform_sync(ask).claimed:
            found += [job.id for job in claimed]
        return found

    claimed = Counter(job for found in together(8, claim_all) for job in found)
    assert len(claimed) == 400
    assert set(claimed.values()) == {1}


def test_coroutines_on_one_store_never_share_a_job(teller):
    teller.enqueue(*[teller.job() for _ in range(300)])
    workers = [teller.register() for _ in range(6)]

    async def claim_all(worker):
        ask = Exchange(worker=worker, claim=teller.request(limit=5))
        found = []
        while claimed := (await teller.store.perform(ask)).claimed:
            found += [job.id for job in claimed]
        return found

    async def all_at_once():
        return await asyncio.gather(*map(claim_all, workers))

    claimed = Counter(job for found in asyncio.run(all_at_once()) for job in found)
    assert len(claimed) == 300
    assert set(claimed.values()) == {1}


def test_every_job_finishes_once_whatever_workers_race_for_it(teller, stores, outcome):
    teller.enqueue(*[teller.job() for _ in range(200)])
    workers = [teller.register() for _ in stores]

    def work(n):
        done, reports = 0, ()
        while True:
            ask = Exchange(worker=workers[n], outcomes=reports, claim=teller.request(limit=5))
            answer = stores[n].perform_sync(ask)
            done += sum(each.answer is Answer.APPLIED for each in answer.reported)
            again = {each.job_id for each in answer.reported if each.answer is Answer.BUSY}
            reports = tuple(each for each in reports if each.job_id in again)
            reports += tuple(outcome(job) for job in answer.claimed)
            if not reports:
                return done

    assert sum(together(8, work)) == 200
    (count,) = teller.store.perform_sync(CountJobs())
    assert (count.state, count.count) == (JobState.SUCCEEDED, 200)


def test_eight_sweepers_lapse_each_attempt_once(teller, stores, clock):
    teller.enqueue(*[teller.job() for _ in range(100)])
    teller.claim(teller.register(), limit=100)
    for store in stores:
        store.perform_sync(Deregister(teller.fresh()))  # a look at the write lock (clause C10)
    clock.advance(LEASE)
    sweeps = together(8, lambda n: stores[n].perform_sync(Maintain(lease=LEASE)).lapsed)
    lapsed = Counter((each.job_id, each.attempt) for sweep in sweeps for each in sweep)
    assert len(lapsed) == 100
    assert set(lapsed.values()) == {1}
    assert {teller.get(job).record.lapses for job, _attempt in lapsed} == {1}


def test_enqueues_of_one_key_at_once_yield_one_job(teller, stores):
    jobs = [teller.job(idempotency_key="k") for _ in stores]
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((jobs[n],)))[0])
    assert len({answer.job_id for answer in answers}) == 1
    assert sorted(answer.deduplicated for answer in answers) == [False] + [True] * 7
    (count,) = teller.store.perform_sync(CountJobs())
    assert count.count == 1


def test_batches_of_the_same_keys_in_other_orders_never_lock_each_other_out(teller, stores):
    keys = [f"k{n}" for n in range(50)]
    orders = [keys, keys[::-1]] * 4
    requests = [
        Enqueue(tuple(teller.job(idempotency_key=key) for key in order)) for order in orders
    ]
    answers = together(8, lambda n: stores[n].perform_sync(requests[n]))
    assert len({each.job_id for answer in answers for each in answer}) == 50
    fresh = [each for answer in answers for each in answer if not each.deduplicated]
    assert len(fresh) == 50


def test_one_request_sent_many_times_at_once_is_stored_once(teller, stores):
    job = teller.job()
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((job,)))[0])
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 7


def test_one_action_sent_many_times_at_once_is_done_once(teller, stores):
    job = teller.job()
    teller.enqueue(job)
    request = Cancel(job_ids=(job.id,), actor="a", action=teller.fresh())
    answers = together(8, lambda n: stores[n].perform_sync(request))
    assert {each[0].effect for each in answers} == {"done"}
