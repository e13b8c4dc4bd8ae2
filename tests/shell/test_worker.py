"""A worker's life: it starts once, whole or not at all, and always ends in order."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemill.errors import DeclarationError, StoreError, WrongContext
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain
from tidemill.values.endings import CancelReason
from tidemill.values.retry import Retry


@pytest.fixture
def nothing_left(threads_of_ours, store):
    """What a worker that ended must not leave behind: threads, tasks, timers, watchers."""

    def check():
        loop = asyncio.get_running_loop()
        assert "tidemill-heart" not in threads_of_ours()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]
        waiting = {repr(each) for each in (*asyncio.all_tasks(), *timers)}
        ours = {each for each in waiting if "src/tidemill" in each or "Pump" in each}
        assert ours == set()
        assert store.watchers == 0

    return check


async def test_a_worker_runs_jobs_and_leaves_nothing_behind(
    jobs, books, make_worker, wait_until, nothing_left
):
    @jobs
    async def coroutine(word):
        return word

    @jobs
    def plain(word):
        return word

    ids = [books.enqueue(name, arguments={"word": name}) for name in ("coroutine", "plain")]
    async with make_worker():
        await wait_until(lambda: books.states(ids)["succeeded"] == 2)
        assert len(books.workers()) == 1
    assert [books.job(job_id).output for job_id in ids] == [b'"coroutine"', b'"plain"']
    assert books.workers() == []
    nothing_left()


async def test_a_hint_claims_a_job_long_before_the_poll_interval(jobs, books, make_worker):
    @jobs
    async def job():
        """Do nothing."""

    async with make_worker(poll_interval=3600):
        await books.wait_for(books.enqueue("job"), "succeeded")
        await books.wait_for(books.enqueue("job"), "succeeded")


async def test_no_handler_sees_the_context_variables_of_whoever_enqueued(jobs, books, make_worker):
    user = contextvars.ContextVar("user", default="nobody")

    @jobs
    async def coroutine():
        return user.get()

    @jobs
    def plain():
        return user.get()

    user.set("the starter")
    async with make_worker(poll_interval=3600):
        for name in ("coroutine", "plain"):
            context = contextvars.copy_context()
            context.run(user.set, "the enqueuer")
            job_id = context.run(books.enqueue, name)
            await books.wait_for(job_id, "succeeded")
            assert books.job(job_id).output == b'"the starter"'


async def test_a_worker_starts_once(make_worker):
    async with make_worker() as worker:
        with pytest.raises(WrongContext, match="started before"):
            await worker.start()
    with pytest.raises(WrongContext, match="started before"):
        await worker.start()


async def test_what_was_not_started_cannot_be_stopped(make_worker, nothing_left):
    worker = make_worker()
    for ask in (worker.stop, worker.wait):
        with pytest.raises(WrongContext, match="has not been started"):
            await ask()
    for tell in (worker.drain, worker.hurry):
        with pytest.raises(WrongContext, match="has not been started"):
            tell()
    nothing_left()


async def test_a_job_that_cannot_run_stops_the_start_before_anything_is_open(
    jobs, books, make_worker, store, nothing_left
):
    @jobs
    async def job():
        """Do nothing."""

    jobs.get("job").fault = DeclarationError("no such type")
    worker = make_worker()
    with pytest.raises(DeclarationError):
        await worker.start()
    nothing_left()
    assert store.connections == 0
    jobs.get("job").fault = None
    async with worker:
        await books.wait_for(books.enqueue("job"), "succeeded")


async def test_a_store_that_cannot_be_watched_leaves_no_heart_behind(
    make_worker, store, nothing_left
):
    store.fail(lambda what: what == "watch", StoreError("closed"))
    with pytest.raises(StoreError):
        await make_worker().start()
    nothing_left()
    assert store.connections == 0


async def test_a_heart_that_cannot_start_leaves_no_watcher_behind(
    make_worker, monkeypatch, nothing_left
):
    def refuse(_thread):
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        await make_worker().start()
    nothing_left()


async def test_a_worker_may_be_stopped_before_it_has_a_lease(make_worker, books, nothing_left):
    worker = make_worker()
    await worker.start()
    await worker.stop()
    await worker.stop()
    assert books.workers() == []
    nothing_left()


async def test_a_body_that_raises_still_drains(jobs, books, make_worker, nothing_left):
    started, go = asyncio.Event(), asyncio.Event()

    @jobs
    async def job():
        started.set()
        await go.wait()

    async def body():
        async with make_worker():
            await started.wait()
            asyncio.get_running_loop().call_soon(go.set)
            raise LookupError

    job_id = books.enqueue("job")
    with pytest.raises(LookupError):
        await body()
    assert books.state(job_id) == "succeeded"
    nothing_left()


async def test_whoever_stops_waiting_leaves_the_worker_as_it_is(jobs, books, make_worker):
    @jobs
    async def job():
        """Do nothing."""

    async with make_worker() as worker:
        waiter = asyncio.create_task(worker.wait())
        await books.wait_for(books.enqueue("job"), "succeeded")
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        await books.wait_for(books.enqueue("job"), "succeeded")
        assert len(books.workers()) == 1


async def test_any_number_may_wait_for_the_end(make_worker):
    worker = make_worker()
    await worker.start()
    waiters = [asyncio.create_task(worker.wait()) for _ in range(3)]
    await worker.stop()
    assert await asyncio.gather(*waiters) == [None, None, None]


async def test_cancelling_run_drains_and_is_passed_on(jobs, books, make_worker, nothing_left):
    started, go = asyncio.Event(), asyncio.Event()

    @jobs
    async def job():
        started.set()
        await go.wait()

    job_id = books.enqueue("job")
    worker = make_worker()
    running = asyncio.create_task(worker.run())
    await started.wait()
    running.cancel()
    asyncio.get_running_loop().call_soon(go.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert books.state(job_id) == "succeeded"
    assert books.workers() == []
    nothing_left()


async def test_cancelling_run_again_ends_the_grace_period_and_loses_nothing(
    jobs, books, make_worker, wait_until, nothing_left
):
    started = asyncio.Event()

    @jobs
    async def job():
        started.set()
        await asyncio.Event().wait()

    job_id = books.enqueue("job")
    worker = make_worker(grace=3600, patience=3600)
    running = asyncio.create_task(worker.run())
    await started.wait()

    def cancel_while_it_runs():
        running.cancel()
        return running.done()

    await wait_until(cancel_while_it_runs)
    assert running.cancelled()
    record = books.job(job_id).record
    assert (record.state, record.failures, record.lapses) == ("ready", 0, 0)
    nothing_left()


def test_run_says_that_it_needs_the_main_thread(make_worker, store):
    with ThreadPoolExecutor(1) as pool, pytest.raises(WrongContext, match="main thread"):
        pool.submit(asyncio.run, make_worker().run()).result()
    assert store.connections == 0


async def test_a_worker_waits_for_the_upkeep_that_is_under_way(
    store, make_worker, wait_until, nothing_left
):
    reached = asyncio.Event()
    gate = store.hold(lambda operation: isinstance(operation, Maintain) and not reached.set())
    worker = make_worker()
    await worker.start()
    await reached.wait()
    stopping = asyncio.create_task(worker.stop())
    await wait_until(worker._pump.drained.done)
    assert not stopping.done()
    gate.set()
    await stopping
    nothing_left()


def test_a_loop_that_was_closed_under_a_worker_ends_its_lease(
    make_worker, books, threads_of_ours, caplog
):
    async def leave_it_running():
        await make_worker(lease=1).start()
        await books.until(books.workers)

    asyncio.run(leave_it_running())
    asyncio.run(books.until(lambda: not threads_of_ours()))
    assert books.workers() == []
    assert "closed under a running worker" in caplog.text


class Death(BaseException):
    """Not even an Exception."""


async def test_the_death_of_the_heart_ends_the_worker_loudly(
    jobs, books, make_worker, nothing_left, *, time, caplog
):
    store = books.store
    started, told = asyncio.Event(), []

    @jobs
    async def job(ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancel_reason)

    job_id = books.enqueue("job")
    worker = make_worker()
    await worker.start()
    await started.wait()
    store.fail(lambda operation: isinstance(operation, Beat), Death("struck"))
    await time.until(worker, lambda: not store.planned)
    with pytest.raises(StoreError, match=r"heart of this worker died.*struck"):
        await worker.wait()
    assert told == [CancelReason.LEASE_LOST]
    assert books.state(job_id) == "running"
    other = books.enqueue("job")
    store.performed.clear()
    for _ in range(10):
        await asyncio.sleep(0)
    assert books.state(other) == "ready"
    assert store.performed == []
    assert "CRITICAL" in {record.levelname for record in caplog.records}
    nothing_left()


async def test_a_fault_in_the_core_ends_the_worker_loudly(
    jobs, books, make_worker, store, nothing_left
):
    started, told = asyncio.Event(), []

    @jobs
    async def job(ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancel_reason)

    books.enqueue("job")
    worker = make_worker()
    await worker.start()
    await started.wait()

    def fault(*_events):
        message = "a rule forgot a case"
        raise AssertionError(message)

    worker._pump._parts.node.step = fault
    books.enqueue("job")
    with pytest.raises(AssertionError, match="forgot a case"):
        await worker.wait()
    assert told == [CancelReason.LEASE_LOST]
    nothing_left()


async def test_the_last_outcomes_of_a_worker_are_offered_until_the_store_takes_them(
    jobs, books, store, make_worker
):
    started, go = asyncio.Event(), asyncio.Event()

    @jobs
    async def job():
        started.set()
        await go.wait()

    job_id = books.enqueue("job", retry=Retry.never())
    worker = make_worker()
    await worker.start()
    await started.wait()
    store.fail(
        lambda operation: isinstance(operation, Exchange) and operation.outcomes,
        StoreError("down"),
        StoreError("still down"),
    )
    go.set()
    await worker.stop()
    assert books.state(job_id) == "succeeded"
