"""Handlers that are interrupted, or that do not end: nothing hangs, and the fault has a name."""

import asyncio
import threading
from datetime import timedelta

import pytest

from tidemill import CancelReason, JobContext, Retry, Tidemill
from tidemill.errors import WrongContext
from tidemill.testing import Harness, JobFailed, NobodyRuns, StuckHandler

AT_ONCE = "100ms"


async def test_a_timeout_passes_when_virtual_time_does(mill: Tidemill, h: Harness) -> None:
    started = asyncio.Event()
    reasons: list[CancelReason | None] = []

    @mill.job("slow", timeout="30s", retry=Retry.never())
    async def slow(context: JobContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(context.cancel_reason)

    await slow.enqueue()
    run = asyncio.create_task(h.run_until_idle())
    await started.wait()
    await h.advance(seconds=29)
    await asyncio.sleep(0)
    assert not run.done()
    assert reasons == []
    await h.advance(seconds=1)
    with pytest.raises(JobFailed, match="HandlerTimeout") as failed:
        await run
    assert failed.value.__cause__ is None
    assert reasons == [CancelReason.TIMEOUT]


async def test_a_plain_handler_hears_of_its_timeout(mill: Tidemill, h: Harness) -> None:
    loop, started = asyncio.get_running_loop(), asyncio.Event()

    @mill.job("slow", timeout="30s")
    def slow(context: JobContext) -> str:
        loop.call_soon_threadsafe(started.set)
        return str(context.sync.wait_cancelled())

    ref = await slow.enqueue()
    run = asyncio.create_task(h.run_until_idle())
    await started.wait()
    await h.advance(minutes=1)
    assert await run == 1
    assert await ref.result() == "timeout"


async def test_a_handler_may_move_time_itself(mill: Tidemill, h: Harness) -> None:
    @mill.job("slow", timeout="30s")
    async def slow(context: JobContext) -> str:
        await h.advance(seconds=31)
        return await context.wait_cancelled()

    ref = await slow.enqueue()
    assert await h.run_until_idle(raise_errors=False) == 1
    assert (await h.job(ref)).state == "scheduled"


@pytest.mark.parametrize("by", ["the harness", "an operator", "another handler"])
async def test_a_running_handler_is_cancelled_at_once(mill: Tidemill, by: str) -> None:
    started = asyncio.Event()

    @mill.job("long")
    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    @mill.job("cancel")
    def cancel(job_id: str) -> None:
        mill.jobs.sync.cancel(job_id, actor="ann")

    async with Harness(mill, concurrency=2) as h:
        ref = await long.enqueue()
        run = asyncio.create_task(h.run_until_idle())
        await started.wait()
        if by == "the harness":
            assert (await h.cancel(ref)).effect == "requested"
        elif by == "an operator":
            await mill.jobs.cancel(ref, actor="ann")
        else:
            await cancel.enqueue(str(ref.id))
        assert await run == (2 if by == "another handler" else 1)
        assert (await h.job(ref)).state == "cancelled"


async def test_a_handler_that_does_not_end_is_named_and_given_back(mill: Tidemill) -> None:
    told = threading.Event()

    @mill.job("coroutine")
    async def coroutine() -> None:
        await asyncio.Event().wait()

    @mill.job("plain")
    def plain(context: JobContext) -> None:
        context.sync.wait_cancelled()
        told.set()
        context.raise_if_cancelled()

    for handle in (coroutine, plain):
        async with Harness(mill, give_up_after=AT_ONCE) as h:
            ref = await handle.enqueue()
            with pytest.raises(StuckHandler, match=rf"{handle.wire_name} {ref.id} \(attempt 1\)"):
                await h.run_until_idle()
            job = await h.job(ref)
            assert (job.state, job.record.failures, job.record.lapses) == ("ready", 0, 0)
    assert told.wait(60)


async def test_a_plain_handler_that_hears_nothing_does_not_keep_the_test(mill: Tidemill) -> None:
    release = threading.Event()

    @mill.job("deaf")
    def deaf() -> None:
        release.wait(60)

    try:
        async with Harness(mill, give_up_after=AT_ONCE) as h:
            ref = await deaf.enqueue()
            with pytest.raises(StuckHandler, match="deaf"):
                await h.run_until_idle()
            assert (await h.job(ref)).state == "ready"
    finally:
        release.set()


async def test_handlers_that_wait_for_each_other_need_concurrency(mill: Tidemill) -> None:
    met = asyncio.Barrier(2)

    @mill.job("meet")
    async def meet() -> None:
        await met.wait()

    async with Harness(mill, give_up_after=AT_ONCE) as h:
        await mill.enqueue_many([meet.bind(), meet.bind()])
        with pytest.raises(StuckHandler, match="give the harness concurrency=2 or more"):
            await h.run_until_idle()
    await met.reset()
    async with Harness(mill, concurrency=2) as h:
        await mill.enqueue_many([meet.bind(), meet.bind()])
        assert await h.run_until_idle() == 2


async def test_a_handler_may_wait_for_the_result_of_its_child(mill: Tidemill) -> None:
    @mill.job("child")
    async def child() -> int:
        return 3

    @mill.job("parent")
    async def parent() -> int:
        return await (await child.enqueue()).result() + 1

    async with Harness(mill, concurrency=2) as h:
        ref = await parent.enqueue()
        assert await h.run_until_idle() == 2
        assert await ref.result() == 4


async def test_a_run_that_is_cancelled_stops_its_handlers(mill: Tidemill, h: Harness) -> None:
    started = asyncio.Event()
    reasons: list[CancelReason | None] = []

    @mill.job("long")
    async def long(context: JobContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(context.cancel_reason)

    ref = await long.enqueue()
    run = asyncio.create_task(h.run_until_idle())
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert reasons == [CancelReason.SHUTDOWN]
    assert (await h.job(ref)).state == "ready"


async def test_a_real_wait_in_a_handler_is_waited_for(mill: Tidemill, h: Harness) -> None:
    loop = asyncio.get_running_loop()

    @mill.job("real")
    async def real() -> str:
        answer: asyncio.Future[str] = loop.create_future()
        threading.Thread(
            target=lambda: loop.call_soon_threadsafe(answer.set_result, "from elsewhere")
        ).start()
        return await answer

    ref = await real.enqueue()
    assert await h.run_until_idle() == 1
    assert await ref.result() == "from elsewhere"


async def test_one_run_at_a_time(mill: Tidemill, h: Harness) -> None:
    @mill.job("inner", retry=Retry.never())
    async def inner() -> None:
        await h.run_until_idle()

    await inner.enqueue()
    with pytest.raises(JobFailed) as failed:
        await h.run_until_idle()
    assert isinstance(failed.value.__cause__, WrongContext)


async def test_a_result_nobody_works_on_is_not_waited_for_for_ever(mill: Tidemill) -> None:
    @mill.job("job")
    async def job() -> int:
        return 1

    async with Harness(mill, give_up_after=AT_ONCE) as h:
        ref = await job.with_options(delay="1h").enqueue()
        with pytest.raises(NobodyRuns, match="the job is scheduled and nothing runs it"):
            await ref.result()
        with pytest.raises(NobodyRuns):
            await asyncio.to_thread(ref.sync.result)
        waiting = asyncio.create_task(ref.result())
        await h.run_for(hours=1)
        assert await waiting == 1


async def test_an_advance_of_days_costs_a_running_handler_no_lease(
    mill: Tidemill, h: Harness
) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    @mill.job("long")
    async def long(context: JobContext) -> float:
        before = context.now()
        started.set()
        await go.wait()
        return (context.now() - before) / timedelta(days=1)

    ref = await long.enqueue()
    run = asyncio.create_task(h.run_until_idle())
    await started.wait()
    await h.advance(weeks=52)
    go.set()
    assert await run == 1
    assert await ref.result() == 364
