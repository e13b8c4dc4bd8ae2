"""Transactional completion in the harness, whose store is in no transaction of the handler's."""

import sqlite3
from contextlib import closing

import aiosqlite
import pytest

from tidemill import JobContext, Retry, Tidemill
from tidemill.testing import Harness

AT_ONCE = Retry.immediate(max_attempts=3)


@pytest.fixture
def mill():
    return Tidemill()


async def test_a_handler_that_completes_and_returns_has_succeeded_with_its_output(mill):
    @mill.job("ledger.post")
    async def post(ctx: JobContext) -> int:
        async with aiosqlite.connect(":memory:") as tx:
            await ctx.complete_in(tx, 7)
        return 8

    async with Harness(mill) as harness:
        ref = await post.enqueue()
        assert await harness.run_until_idle() == 1
        assert await ref.result(timeout=1) == 7


async def test_a_handler_that_completes_and_raises_has_failed(mill):
    @mill.job("ledger.post", retry=AT_ONCE)
    def post(ctx: JobContext) -> None:
        with closing(sqlite3.connect(":memory:")) as tx:
            ctx.complete_in(tx)
            if ctx.attempt == 1:
                raise ValueError

    async with Harness(mill) as harness:
        ref = await post.enqueue()
        assert await harness.run_until_idle() == 2
        job = await harness.job(ref.id)
        assert (job.state, len(job.attempts)) == ("succeeded", 1)


async def test_what_is_no_transaction_is_refused_as_ever(mill):
    @mill.job("ledger.post", retry=Retry.never())
    async def post(ctx: JobContext) -> None:
        ctx.complete_in(object())  # type: ignore[call-overload]

    async with Harness(mill) as harness:
        await post.enqueue()
        with pytest.raises(Exception, match="no transaction that a job can be written in"):
            await harness.run_until_idle()
