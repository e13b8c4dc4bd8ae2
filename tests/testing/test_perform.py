"""Running one job alone, through the whole way, for what its handler returns."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from tidemill import Discard, JobContext, Snooze, Tidemill
from tidemill.errors import EncodingError
from tidemill.testing import Harness, JobFailed


@dataclass
class Receipt:
    amount: int


async def test_a_handler_is_performed_by_the_real_way(mill: Tidemill, h: Harness) -> None:
    @mill.job("capture", queue="payments", timeout="30s")
    async def capture(context: JobContext, amounts: tuple[int, ...]) -> Receipt:
        assert (context.attempt, context.queue, context.tenant) == (1, "payments", "acme")
        assert context.deadline == context.now() + timedelta(seconds=30)
        return Receipt(sum(amounts))

    handle = capture.with_options(tenant="acme")
    assert await h.perform(handle, amounts=(1, 2)) == Receipt(3)
    with pytest.raises(EncodingError, match="Argument 'amounts'"):
        await h.perform(handle, 3)  # type: ignore[arg-type]


async def test_other_jobs_stay_where_they_are(mill: Tidemill, h: Harness) -> None:
    ran: list[int] = []

    @mill.job("job")
    def job(number: int) -> None:
        ran.append(number)
        if number == 9:
            job.sync.enqueue(10)

    await job.with_options(priority=7).enqueue(1)
    await h.perform(job, 9)
    assert ran == [9]
    assert [each.arguments for each in h.enqueued(job)] == [{"number": 1}, {"number": 10}]
    h.not_enqueued(job, number=9)
    assert await h.run_until_idle() == 2
    assert ran == [9, 1, 10]


async def test_it_runs_now_whatever_the_options_say_of_time(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job() -> str:
        return "now"

    await job.with_options(idempotency_key="once", delay="1h").enqueue()
    for handle in (
        job.with_options(delay="1d"),
        job.with_options(at=datetime(2030, 1, 1, tzinfo=UTC)),
        job.with_options(idempotency_key="once", expires="1h"),
    ):
        assert await h.perform(handle) == "now"


@pytest.mark.parametrize("error", [KeyError("k"), Discard("no"), Snooze("1h")], ids=repr)
async def test_what_the_handler_raises_is_raised(
    mill: Tidemill, h: Harness, error: Exception
) -> None:
    @mill.job("job")
    async def job() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await h.perform(job)
    assert raised.value is error
    assert await h.run_for(days=1) == 0


async def test_an_end_without_an_exception_is_told(mill: Tidemill, h: Harness) -> None:
    @mill.job("slow", timeout="1s")
    async def slow(context: JobContext) -> None:
        await h.advance(seconds=1)
        await context.wait_cancelled()

    @mill.job("odd")
    async def odd() -> object:
        return object()

    with pytest.raises(JobFailed, match="did not end within its timeout"):
        await h.perform(slow)
    with pytest.raises(JobFailed, match="output of 'odd'"):
        await h.perform(odd)


async def test_a_handler_may_be_performed_while_a_run_is_under_way(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("inner")
    async def inner() -> int:
        return 1

    @mill.job("outer")
    async def outer() -> int:
        return await h.perform(inner) + 1

    ref = await outer.enqueue()
    assert await h.run_until_idle() == 1
    assert await ref.result() == 2
