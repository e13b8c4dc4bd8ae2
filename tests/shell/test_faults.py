"""Store faults: the worker never exits, degrades, recovers, loses nothing, records once."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from datetime import timedelta
from itertools import product

import pytest
from tests.shell.held_time import STEPS_PER_LEASE

from tidemill.errors import AnswerLost, SchemaError, StoreUnavailable
from tidemill.shell.heart import introduction
from tidemill.shell.identity import new_id
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.values.endings import CancelReason
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import WorkerId
from tidemill.values.retry import Retry

FAULTS = [
    StoreUnavailable("the database is busy"),
    AnswerLost("the connection was cut"),
    ConnectionResetError("a fault that no store translated"),
    asyncio.CancelledError(),
]
LEASE = timedelta(seconds=1.5)
NAMES = ["unavailable", "answer-lost", "untranslated", "cancelled"]


def claims(operation):
    return isinstance(operation, Exchange) and operation.claim is not None


def is_beat(operation):
    return isinstance(operation, Beat)


def reports(operation):
    return isinstance(operation, Exchange) and bool(operation.outcomes)


@pytest.fixture
def bodies(jobs):
    """A coroutine and a plain job, and how often each body ran, by key."""
    ran: Counter[str] = Counter()

    @jobs
    async def coroutine(key):
        ran[key] += 1
        return key

    @jobs
    def plain(key):
        ran[key] += 1
        return key

    return ran


def enqueue_ten(books):
    keys = [f"{name}-{number}" for name in ("coroutine", "plain") for number in range(5)]
    return {key: books.enqueue(key.partition("-")[0], arguments={"key": key}) for key in keys}


def assert_recorded_once(books, ids, bodies):
    assert bodies == Counter(dict.fromkeys(ids, 1))
    for key, job_id in ids.items():
        details = books.job(job_id)
        assert details.output == f'"{key}"'.encode()
        assert (details.record.failures, details.record.lapses) == (0, 0)
        assert not any(attempt.stale for attempt in details.attempts)


AROUND = {
    f"{fits.__name__}-{'after' if after else 'before'}-{name}": (fits, after, error)
    for fits in (claims, reports)
    for after in (False, True)
    for name, error in zip(NAMES, FAULTS, strict=True)
}


@pytest.mark.parametrize("fault", list(AROUND.values()), ids=list(AROUND))
async def test_a_fault_around_an_exchange_loses_nothing_and_records_once(
    books, store, make_worker, bodies, *, time, fault
):
    fits, after, error = fault
    ids = enqueue_ten(books)
    store.fail(fits, *[error] * (1 if after else 2), after=after)
    async with make_worker() as worker:
        await time.until(worker, lambda: books.states(ids.values())["succeeded"] == len(ids))
        assert store.planned == []
    assert_recorded_once(books, ids, bodies)
    assert books.workers() == []


async def test_a_call_over_the_delivery_time_out_loses_nothing(
    books, store, make_worker, bodies, caplog
):
    ids = enqueue_ten(books)
    gate = store.hold(reports)
    async with make_worker(delivery_timeout=0.05):
        await books.until(lambda: "no answer within the delivery time-out" in caplog.text)
        gate.set()
        await books.until(lambda: books.states(ids.values())["succeeded"] == len(ids))
    assert_recorded_once(books, ids, bodies)


async def test_an_outage_is_logged_once_and_so_is_its_end(
    books, store, make_worker, bodies, caplog
):
    caplog.set_level(logging.INFO, "tidemill.worker")
    ids = enqueue_ten(books)
    store.fail(claims, *[StoreUnavailable("restarting")] * 3)
    async with make_worker():
        await books.until(lambda: books.states(ids.values())["succeeded"] == len(ids))
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("The store answers again.") == 1
    outage = "The store does not answer; trying again until it does (restarting)."
    assert lines.count(outage) == 1
    assert_recorded_once(books, ids, bodies)


@pytest.mark.parametrize("error", FAULTS[:3], ids=NAMES[:3])
async def test_upkeep_that_fails_is_tried_again_and_sweeps(
    books, store, make_worker, bodies, *, time, error
):
    job_id = books.enqueue("coroutine", arguments={"key": "k"}, retry=Retry.immediate())
    claim_and_vanish(store)
    time.clock.advance(LEASE.total_seconds())
    store.fail(lambda operation: isinstance(operation, Maintain), error, error)
    async with make_worker() as worker:
        await time.until(worker, lambda: books.state(job_id) == "succeeded")
        assert store.planned == []
    record = books.job(job_id).record
    assert (record.attempt, record.lapses, bodies["k"]) == (2, 1, 1)


def claim_and_vanish(store):
    """Be a worker that claims one job and is never heard of again."""
    names = frozenset({"coroutine"})
    worker = WorkerId(new_id())
    info = introduction(("default",), names, 1)(worker)
    store.inner.perform_sync(Register(info=info, lease=LEASE))
    request = ClaimRequest(shares=(Share("default", 1),), limit=1, wire_names=names)
    (_,) = store.inner.perform_sync(Exchange(worker=worker, claim=request)).claimed


@pytest.mark.parametrize("fault", list(product([Register, "dedicated"], FAULTS[:3])))
async def test_a_worker_registers_as_soon_as_the_store_lets_it(
    books, store, make_worker, bodies, *, time, fault
):
    what, error = fault
    ids = enqueue_ten(books)
    store.fail(lambda op: op == what or type(op) is what, error, error)
    async with make_worker() as worker:
        await time.until(worker, lambda: books.states(ids.values())["succeeded"] == len(ids))
    assert_recorded_once(books, ids, bodies)


@pytest.mark.parametrize("fault", [(FAULTS[0], False), (FAULTS[1], True)])
async def test_a_missed_beat_costs_neither_the_lease_nor_the_handler(
    jobs, books, store, make_worker, *, time, fault
):
    error, after = fault
    go = asyncio.Event()

    @jobs
    async def job():
        await go.wait()

    job_id = books.enqueue("job")
    async with make_worker() as worker:
        await books.wait_for(job_id, "running")
        workers = books.workers()
        store.fail(is_beat, error, after=after)
        await time.until(worker, lambda: not store.planned)
        store.forget_beats()
        await time.until(worker, lambda: store.beats.acquire(blocking=False))
        go.set()
        record = (await books.wait_for(job_id, "succeeded")).record
        assert books.workers() == workers
    assert (record.attempt, record.lapses) == (1, 0)


async def test_a_handler_that_works_on_while_no_beat_succeeds_records_nothing(
    jobs, books, store, make_worker, *, time, caplog
):
    told, go = [], threading.Event()

    @jobs
    def job(ctx):
        if ctx.attempt == 1:
            told.append(ctx.sync.wait_cancelled(60))
            go.wait(60)
        return f"attempt {ctx.attempt}"

    job_id = books.enqueue("job", retry=Retry.immediate())
    async with make_worker(concurrency=2) as worker:
        await books.wait_for(job_id, "running")
        (lost,) = books.workers()
        store.cut_off(lambda operation: is_beat(operation) and operation.worker == lost)
        await time.until(worker, lambda: books.state(job_id) == "succeeded")
        before = books.job(job_id)
        assert (told, worker._pump.running) == ([CancelReason.LEASE_LOST], 1)
        go.set()
        await time.until(worker, lambda: not worker._pump.running)
        assert books.workers() != [lost]
    assert "no heartbeat was answered in time" in caplog.text
    assert (before.output, before.record.lapses) == (b'"attempt 2"', 1)
    assert books.job(job_id) == before


async def test_a_connection_that_failed_is_not_used_for_the_next_beat(
    books, store, make_worker, time
):
    async with make_worker() as worker:
        await time.until(worker, lambda: store.beats.acquire(blocking=False))
        assert store.connections == 1
        store.fail(is_beat, StoreUnavailable("dead socket"))
        await time.until(worker, lambda: not store.planned)
        store.forget_beats()
        await time.until(worker, lambda: store.beats.acquire(blocking=False))
        assert store.connections == 2


async def test_a_beat_without_an_answer_is_logged_by_its_one_cause_and_so_is_its_end(
    store, make_worker, time, caplog
):
    cause = StoreUnavailable("The connection to PostgreSQL failed at 'beat': cut off.\nSee there.")
    error = AnswerLost(f"The connection broke before a commit was answered: {cause}")
    error.__cause__ = cause
    async with make_worker() as worker:
        await time.until(worker, lambda: store.beats.acquire(blocking=False))
        store.fail(is_beat, error)
        await time.until(worker, lambda: "answered again" in caplog.text)
    told = [line for line in caplog.messages if "eartbeat" in line]
    why = "The connection to PostgreSQL failed at 'beat': cut off. …"
    assert told == [
        f"A heartbeat had no answer; trying again until it has ({why}).",
        "Heartbeats are answered again.",
    ]


async def test_a_handler_that_blocks_the_loop_for_long_is_told_when_it_has_ended(
    jobs, books, make_worker, time, caplog
):
    @jobs
    async def job():
        time.clock.advance(30)

    job_id = books.enqueue("job")
    async with make_worker():
        await books.wait_for(job_id, "succeeded")
    told = [line for line in caplog.messages if line.startswith("The event loop stood still")]
    assert len(told) == 1


async def test_a_worker_that_cannot_deregister_still_ends(
    books, store, make_worker, threads_of_ours
):
    store.fail(lambda operation: isinstance(operation, Deregister), StoreUnavailable("gone"))
    async with make_worker():
        await books.until(lambda: any(isinstance(op, Register) for op in store.performed))
    assert store.planned == []
    assert "tidemill-heart" not in threads_of_ours()


async def test_a_beat_that_hangs_for_ever_does_not_keep_the_worker(
    books, store, make_worker, threads_of_ours, caplog
):
    stuck, release = threading.Event(), threading.Event()

    def hang(operation):
        if isinstance(operation, Beat):
            stuck.set()
            release.wait(60)
        return False

    store.fail(hang, StoreUnavailable("never raised"))
    worker = make_worker(lease=LEASE, delivery_timeout=0.05)
    await worker.start()
    await books.until(stuck.is_set)
    await worker.stop()
    assert "A heartbeat is stuck in the store" in caplog.text
    release.set()
    await books.until(lambda: "tidemill-heart" not in threads_of_ours())


async def test_a_blocked_loop_does_not_cost_the_lease(jobs, books, store, make_worker, time):
    workers = []

    @jobs
    async def hog():
        store.forget_beats()
        for _ in range(2 * STEPS_PER_LEASE):  # two leases pass, and the loop never turns
            time.step(workers[0])
            assert store.perform_sync(Maintain(lease=LEASE)).lapsed == ()
        return store.forget_beats()

    job_id = books.enqueue("hog")
    async with make_worker() as worker:
        workers.append(worker)
        registered = await registration(books)
        details = await books.wait_for(job_id, "succeeded")
        assert books.workers() == registered
    assert (details.record.attempt, details.record.lapses) == (1, 0)
    assert json.loads(details.output) >= 5


async def registration(books):
    await books.until(books.workers)
    return books.workers()


async def test_a_loop_blocked_beyond_the_stall_limit_is_left_to_lapse(
    jobs, books, store, make_worker, *, time, caplog
):
    workers, lapsed = [], []

    @jobs
    async def hog():
        for _ in range(3 * STEPS_PER_LEASE if not lapsed else 0):
            time.step(workers[0])
            lapsed.extend(store.perform_sync(Maintain(lease=LEASE)).lapsed)

    job_id = books.enqueue("hog", retry=Retry.immediate())
    async with make_worker(stall_limit=60) as worker:
        workers.append(worker)
        await time.until(worker, lambda: books.state(job_id) == "succeeded")
    record = books.job(job_id).record
    assert (record.attempt, record.lapses, len(lapsed)) == (2, 1, 1)
    assert "has not turned for" in caplog.text


@pytest.mark.parametrize("fits", [Register, Beat], ids=["registering", "beating"])
async def test_a_schema_that_does_not_fit_ends_the_worker_with_that_sentence(
    store, make_worker, time, fits
):
    unfit = SchemaError("the schema is for a newer Tidemill")
    store.fail(lambda operation: isinstance(operation, fits), unfit)
    worker = make_worker()
    await worker.start()
    await time.until(worker, lambda: not store.planned)
    with pytest.raises(SchemaError, match="newer Tidemill"):
        await worker.wait()
