"""What handlers say of their attempts, in the harness: seen at once, on virtual time."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemill import Bounds, JobContext, Retry, Tidemill
from tidemill.errors import InvalidValue
from tidemill.testing import Harness

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def said(job: Any) -> tuple[float | None, str] | None:
    return job.progress and (job.progress.fraction, job.progress.message)


def messages(job: Any) -> list[str]:
    return [line.message for line in job.log]


async def test_what_a_handler_says_stays_with_the_job(mill: Tidemill, h: Harness) -> None:
    @mill.job("grind")
    async def grind(ctx: JobContext, stones: int) -> None:
        for stone in range(stones):
            ctx.progress(stone / stones, f"stone {stone}")
            ctx.log("ground", stone=stone)
        ctx.progress(1)

    ref = await grind.enqueue(3)
    assert await h.run_until_idle() == 1
    job = await h.job(ref)
    assert said(job) == (1, "")
    assert job.progress is not None
    assert (job.progress.attempt, job.progress.at) == (1, START)
    assert [(line.message, line.values, line.at) for line in job.log] == [
        ("ground", {"stone": stone}, START) for stone in range(3)
    ]
    assert (await mill.jobs.log(ref)).lines == job.log


async def test_every_word_is_seen_at_once_although_no_time_passes(
    mill: Tidemill, h: Harness
) -> None:
    turns = [asyncio.Event() for _ in range(3)]
    heard = [asyncio.Event() for _ in range(3)]

    @mill.job("grind")
    async def grind(ctx: JobContext) -> None:
        for number, (turn, done) in enumerate(zip(turns, heard, strict=True)):
            ctx.progress(number / 4)
            ctx.log("ground", stone=number)
            done.set()
            await turn.wait()

    ref = await grind.enqueue()
    run = asyncio.create_task(h.run_until_idle())
    for number, (turn, done) in enumerate(zip(turns, heard, strict=True)):
        await done.wait()
        while len((await h.job(ref)).log) <= number:  # noqa: ASYNC110 - the run is let go on
            await asyncio.sleep(0)
        assert said(await h.job(ref)) == (number / 4, "")
        turn.set()
    assert await run == 1


async def test_a_word_is_dated_with_the_virtual_instant(mill: Tidemill, h: Harness) -> None:
    @mill.job("grind")
    async def grind(ctx: JobContext) -> None:
        ctx.log("before")
        await h.advance(hours=1)
        ctx.log("after")
        ctx.progress(0.5)

    ref = await grind.enqueue()
    await h.run_until_idle()
    job = await h.job(ref)
    assert [line.at for line in job.log] == [START, START + HOUR]
    assert job.progress is not None
    assert job.progress.at == START + HOUR


async def test_a_failed_attempt_keeps_its_words_beside_those_of_the_next(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("grind", retry=Retry.immediate(max_attempts=2))
    def grind(ctx: JobContext) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        ctx.progress(0.1 * ctx.attempt)
        if ctx.attempt == 1:
            raise OSError

    ref = await grind.enqueue()
    assert await h.run_until_idle() == 2
    job = await h.job(ref)
    assert messages(job) == ["attempt 1", "attempt 2"]
    assert said(job) == (0.2, "")


@pytest.mark.parametrize("inline", [True, False])
def test_plain_handlers_and_tests_without_a_loop_say_as_much(mill: Tidemill, inline: bool) -> None:
    @mill.job("grind")
    def grind(ctx: JobContext) -> str:
        helper = threading.Thread(target=ctx.log, args=["from another thread"])
        helper.start()
        helper.join()
        ctx.progress(None, "resting")
        return "flour"

    with Harness(mill, inline=inline) as h:
        ref = grind.sync.enqueue()
        assert h.sync.run_until_idle() == 1
        job = h.sync.job(ref)
        assert (messages(job), said(job)) == (["from another thread"], (None, "resting"))
        assert mill.jobs.sync.log(ref).lines == job.log
        assert h.sync.perform(grind) == "flour"


async def test_performed_handlers_may_say_whatever_they_like(mill: Tidemill, h: Harness) -> None:
    @mill.job("grind")
    async def grind(ctx: JobContext, fraction: float) -> str:
        ctx.log("started")
        ctx.progress(fraction)
        return "flour"

    assert await h.perform(grind, 0.5) == "flour"
    with pytest.raises(InvalidValue, match=r"Progress 45\.0 is no number from 0 to 1: say 0\.45"):
        await h.perform(grind, 45)
    (performed, refused) = await h.jobs(handle=grind)
    assert (said(performed), messages(refused)) == ((0.5, ""), ["started"])


async def test_the_bounds_of_the_app_hold(mill: Tidemill) -> None:
    mill = Tidemill(bounds=Bounds(log_lines=2, tags_per_job=1, progress_message_bytes=30))

    @mill.job("grind", retry=Retry.never())
    async def grind(ctx: JobContext) -> None:
        for number in range(5):
            ctx.log(f"stone {number}")
        ctx.progress(0.5, "x" * 50)
        ctx.add_tag("one")
        ctx.add_tag("two")

    async with Harness(mill) as h:
        ref = await grind.enqueue()
        assert await h.run_until_idle(raise_errors=False) == 1
        job = await h.job(ref)
    assert messages(job) == [
        "stone 0", "stone 1", "No more lines are kept: an attempt has 2."
    ]  # fmt: skip
    assert said(job) == (0.5, "xxxxxxxxxx … [cut: 50 bytes]")
    assert job.error is not None
    assert "Number of tags is 2 tags, over the bound of 1" in job.error.message
