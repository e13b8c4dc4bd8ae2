"""Every reason to stop reaches handlers of both kinds, and each has its own end (clause G3)."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from tidemill.shell.cancellation import Cancellation
from tidemill.shell.identity import new_id
from tidemill.store.lease import Deregister
from tidemill.store.operators import Cancel
from tidemill.values.endings import CancelReason
from tidemill.values.retry import Retry

KINDS = ["coroutine", "plain"]


@pytest.fixture
def told(jobs):
    """Two jobs that run until they are asked to stop, and what each was told."""
    told = []

    @jobs
    async def coroutine(ctx):
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancel_reason)

    @jobs
    def plain(ctx):
        told.append(ctx.sync.wait_cancelled(timeout=60))
        ctx.raise_if_cancelled()

    return told


@pytest.fixture
def said(caplog):
    """What was logged of the end of a job's first attempt: the levels and the words."""
    caplog.set_level(logging.INFO, "tidemill.worker")

    def read(wire_name, job_id):
        start = f"Attempt 1 of {wire_name} {job_id} "
        lines = [(record.levelname, record.getMessage()) for record in caplog.records]
        return [(level, line.removeprefix(start)) for level, line in lines if start in line]

    return read


def cancel(store, job_id):
    store.perform_sync(Cancel(job_ids=(job_id,), actor="ada", action=new_id()))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_operators_cancel_is_heard_within_a_heartbeat(
    books, store, make_worker, told, said, *, time, kind
):
    job_id = books.enqueue(kind)
    async with make_worker() as worker:
        await books.wait_for(job_id, "running")
        cancel(store, job_id)
        await time.until(worker, lambda: books.state(job_id) == "cancelled")
        record = books.job(job_id).record
    assert told == [CancelReason.OPERATOR]
    assert (record.cause, record.attempt) == ("operator:ada", 1)
    assert said(kind, job_id) == [("INFO", "was cancelled (asked by ada).")]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_over_its_timeout_is_told_and_fails(books, make_worker, told, said, kind):
    job_id = books.enqueue(kind, timeout=timedelta(milliseconds=10), retry=Retry.never())
    async with make_worker():
        details = await books.wait_for(job_id, "dead")
    assert told == [CancelReason.TIMEOUT]
    assert details.attempts[0].error.kind == "tidemill.HandlerTimeout"
    words = "failed: it did not end within its timeout of 0.01 s."
    assert said(kind, job_id) == [("WARNING", words)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_shutdown_is_told_after_the_grace_period_and_costs_nothing(
    books, make_worker, told, said, kind
):
    job_id = books.enqueue(kind)
    async with make_worker(grace=0):
        await books.wait_for(job_id, "running")
    record = books.job(job_id).record
    assert told == [CancelReason.SHUTDOWN]
    assert (record.state, record.failures, record.lapses) == ("ready", 0, 0)
    words = "was cut off by the shutdown; the job is given back, at no cost."
    assert said(kind, job_id) == [("INFO", words)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_lease_is_told_and_nothing_is_reported(
    books, store, make_worker, told, said, *, time, kind
):
    job_id = books.enqueue(kind, retry=Retry.fixed(timedelta(days=1000)))
    async with make_worker() as worker:
        await books.wait_for(job_id, "running")
        (lost,) = books.workers()
        store.perform_sync(Deregister(lost))
        await time.until(worker, lambda: books.state(job_id) == "scheduled")
        details = books.job(job_id)
        await time.until(worker, lambda: told)
        await time.until(worker, lambda: books.workers() and lost not in books.workers())
    assert told == [CancelReason.LEASE_LOST]
    assert [attempt.verdict for attempt in details.attempts] == ["lapsed"]
    ((level, words),) = said(kind, job_id)
    assert (level, words.partition(";")[0]) == ("INFO", "ended after its worker had lost the lease")
    assert books.job(job_id) == details


async def test_a_handler_that_swallows_its_cancellation_and_returns_has_succeeded(
    jobs, books, store, make_worker, time
):
    @jobs
    async def determined():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"

    job_id = books.enqueue("determined")
    async with make_worker() as worker:
        await books.wait_for(job_id, "running")
        cancel(store, job_id)
        await time.until(worker, lambda: books.state(job_id) == "succeeded")
        details = books.job(job_id)
    assert details.output == b'"done anyway"'


async def test_a_cancellation_is_waited_for_from_any_loop_and_thread():
    cancellation = Cancellation()
    waiters = [
        asyncio.create_task(cancellation.wait()),
        asyncio.create_task(asyncio.to_thread(asyncio.run, cancellation.wait())),
        asyncio.create_task(asyncio.to_thread(cancellation.wait_in_thread, 60)),
    ]
    await asyncio.sleep(0)
    cancellation.set(CancelReason.TIMEOUT)
    cancellation.set(CancelReason.OPERATOR)
    assert await asyncio.gather(*waiters) == [CancelReason.TIMEOUT] * 3
    assert await cancellation.wait() is CancelReason.TIMEOUT


async def test_a_wait_that_is_given_up_is_forgotten():
    cancellation = Cancellation()
    waiter = asyncio.create_task(cancellation.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert cancellation._wakes == set()
    assert cancellation.wait_in_thread(0) is None


def test_a_waiter_whose_loop_has_closed_does_not_hinder_the_others():
    cancellation = Cancellation()
    loop = asyncio.new_event_loop()
    waiter = loop.create_task(cancellation.wait())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    cancellation.set(CancelReason.SHUTDOWN)
    assert cancellation.reason is CancelReason.SHUTDOWN
    waiter._log_destroy_pending = False
    waiter.get_coro().close()
