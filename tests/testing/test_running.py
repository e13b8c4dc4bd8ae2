"""Running jobs on virtual time: what is due, in order, by the decisions of production."""

import threading
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from tidemill import JobContext, Retry, RetryAfter, Snooze, Tidemill
from tidemill.errors import ConfigurationError, NotFound, WrongContext
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import ListWorkers
from tidemill.testing import Harness, JobFailed, Runaway
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.tags import Tag

START = datetime(2026, 3, 1, tzinfo=UTC)


async def test_a_job_runs_when_it_is_due_and_not_before(mill: Tidemill, h: Harness) -> None:
    @mill.job("remind")
    async def remind(context: JobContext, customer: str) -> str:
        return f"{customer} at {context.now():%d %H:%M}"

    ref = await remind.with_options(delay=timedelta(days=7)).enqueue("c-1")
    assert await h.run_until_idle() == 0
    assert (await h.job(ref)).state == "scheduled"
    assert await h.advance(days=6, hours=23) == START + timedelta(days=6, hours=23)
    assert await h.run_until_idle() == 0
    await h.advance("1h")
    assert await h.run_until_idle() == 1
    assert (await h.job(ref.id)).state == "succeeded"
    assert await ref.result() == "c-1 at 08 00:00"


async def test_nothing_runs_until_it_is_told_to(mill: Tidemill, h: Harness) -> None:
    ran: list[int] = []

    @mill.job("note")
    async def note() -> None:
        ran.append(1)

    await note.enqueue()
    await h.advance(days=1)
    assert ran == []
    assert await h.run_until_idle() == 1
    assert await h.run_until_idle() == 0
    assert ran == [1]


async def test_a_run_leaves_no_worker_and_no_watcher_behind(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job() -> int:
        return len(h.store.perform_sync(ListWorkers()))

    ref = await job.enqueue()
    await h.run_until_idle()
    assert await ref.result() == 1
    assert h.store.perform_sync(ListWorkers()) == ()
    assert h.store._watchers == {}


async def test_what_handlers_enqueue_runs_in_the_same_run(mill: Tidemill, h: Harness) -> None:
    ran: list[int] = []

    @mill.job("count")
    async def count(down: int) -> None:
        ran.append(down)
        if down:
            await count.enqueue(down - 1)

    @mill.job("start", queue="elsewhere")
    def start() -> None:
        count.with_options(queue="nobody-has-named-it").sync.enqueue(3)

    await start.enqueue()
    assert await h.run_until_idle() == 5
    assert ran == [3, 2, 1, 0]


async def test_every_try_counts_and_a_backoff_is_exact(mill: Tidemill, h: Harness) -> None:
    tries: list[datetime] = []

    @mill.job("flaky", retry=Retry.exponential(max_attempts=4))
    async def flaky(context: JobContext) -> int:
        tries.append(context.now())
        if context.attempt < 3:
            raise OSError("not yet")
        return context.attempt

    @mill.job("eager", retry=Retry.immediate(max_attempts=3))
    async def eager(context: JobContext) -> None:
        if context.attempt < 3:
            raise OSError("not yet")

    ref = await flaky.enqueue()
    await eager.enqueue()
    assert await h.run_until_idle() == 4
    for wait in (5, 10):
        await h.advance(seconds=wait - 1)
        assert await h.run_until_idle() == 0
        await h.advance(seconds=1)
        assert await h.run_until_idle() == 1
    assert await ref.result() == 3
    assert tries == [START, START + timedelta(seconds=5), START + timedelta(seconds=15)]


async def test_running_for_a_time_runs_each_job_at_the_instant_it_falls_due(
    mill: Tidemill, h: Harness
) -> None:
    ran: list[tuple[str, timedelta]] = []

    @mill.job("tick")
    async def tick(context: JobContext, left: int) -> None:
        ran.append(("tick", context.now() - START))
        if left:
            await tick.with_options(delay="10h").enqueue(left - 1)

    @mill.job("flaky", retry=Retry.fixed(timedelta(hours=1), max_attempts=2))
    def flaky(context: JobContext) -> None:
        ran.append(("flaky", context.now() - START))
        if context.attempt == 1:
            raise OSError("not yet")

    await tick.enqueue(9)
    await flaky.with_options(delay="9h 30m").enqueue()
    assert await h.run_for(days=1) == 5
    hours = [(name, at / timedelta(hours=1)) for name, at in ran]
    assert hours == [("tick", 0), ("flaky", 9.5), ("tick", 10), ("flaky", 10.5), ("tick", 20)]
    assert h.now == START + timedelta(days=1)


async def test_jobs_run_in_the_order_of_the_claim(mill: Tidemill, h: Harness) -> None:
    ran: list[str] = []

    @mill.job("a")
    async def coroutine(name: str) -> None:
        ran.append(name)

    @mill.job("b")
    def plain(name: str) -> None:
        ran.append(name)

    for number in range(5):
        await (coroutine if number % 2 else plain).enqueue(str(number))
    await coroutine.with_options(priority=1).enqueue("first")
    await plain.with_options(priority=-1).enqueue("last")
    assert await h.run_until_idle() == 7
    assert ran == ["first", "0", "1", "2", "3", "4", "last"]


async def test_only_the_queues_that_are_named_are_served(mill: Tidemill) -> None:
    @mill.job("job")
    async def job() -> None:
        """Do nothing."""

    async with Harness(mill, queues={"served": 2, "too": 1}) as h:
        for queue in ("served", "too", "not"):
            await job.with_options(queue=queue).enqueue()
        assert await h.run_until_idle() == 2
        assert [left.queue for left in await h.jobs(state="ready")] == ["not"]


async def test_wishes_of_handlers_are_heard(mill: Tidemill, h: Harness) -> None:
    @mill.job("job", retry=Retry.fixed(timedelta(minutes=1)))
    async def job(context: JobContext) -> None:
        if context.attempt == 1:
            raise Snooze("2h")
        if context.attempt == 2:
            raise RetryAfter("3h")

    ref = await job.enqueue()
    assert await h.run_until_idle() == 1
    assert (await h.job(ref)).due_at == START + timedelta(hours=2)
    assert await h.run_for(hours=5) == 2
    assert (await h.job(ref)).state == "succeeded"


async def test_a_plain_handler_sees_another_thread_or_the_tests_own(mill: Tidemill) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")

    @mill.job("where")
    def where() -> tuple[bool, str]:
        child.sync.enqueue()
        return threading.current_thread() is threading.main_thread(), user.get()

    @mill.job("child")
    async def child() -> None:
        """Do nothing."""

    user.set("ann")
    for inline in (False, True):
        async with Harness(mill, inline=inline) as h:
            ref = await where.enqueue()
            assert await h.run_until_idle() == 2
            assert await ref.result() == (inline, "ann")


async def test_an_inline_handler_may_run_a_loop_of_its_own(mill: Tidemill) -> None:
    import asyncio

    async def inner() -> int:
        await asyncio.sleep(0)
        return 7

    @mill.job("outer")
    def outer() -> int:
        return asyncio.run(inner())

    async with Harness(mill, inline=True) as h:
        ref = await outer.enqueue()
        await h.run_until_idle()
        assert await ref.result() == 7
        assert asyncio.get_running_loop() is not None


async def test_no_thread_is_left_behind(mill: Tidemill) -> None:
    ended: list[threading.Thread] = []

    @mill.job("plain")
    def plain() -> None:
        ended.append(threading.current_thread())

    async with Harness(mill) as h:
        await plain.enqueue()
        await h.run_until_idle()
    ended[0].join(60)
    assert not ended[0].is_alive()


async def test_a_job_is_looked_at_whole(mill: Tidemill, h: Harness) -> None:
    @dataclass
    class Order:
        number: int

    @mill.job("sell", queue="shop", retry=Retry.immediate(max_attempts=2))
    async def sell(context: JobContext, order: Order, *, gift: bool = False) -> Order:
        context.add_tag("order", str(order.number))
        if context.attempt == 1:
            raise OSError("not yet")
        return Order(order.number + 1)

    ref = await sell.enqueue(Order(1))
    await h.run_until_idle()
    job = await h.job(str(ref.id))
    assert (job.id, job.wire_name, job.queue, job.attempt) == (ref.id, "sell", "shop", 2)
    assert (job.arguments, job.output) == ({"order": {"number": 1}}, {"number": 2})
    assert (job.tags, job.cause) == ({Tag("order", "1")}, None)
    assert job.error is not None
    assert job.error.message == "not yet"
    assert await h.jobs(handle=sell, queue="shop", state=["succeeded", "dead"]) == [job]
    assert await h.jobs(queue="elsewhere") == []
    with pytest.raises(ValueError, match="not a valid JobState"):
        await h.jobs(state="finished")
    with pytest.raises(NotFound):
        await h.job(new_id())


async def test_all_jobs_are_listed_oldest_first(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job(number: int) -> None:
        """Do nothing."""

    await mill.enqueue_many([job.bind(number) for number in range(450)])
    assert [each.arguments["number"] for each in await h.jobs()] == list(range(450))
    assert await h.run_until_idle() == 450


async def test_a_job_that_goes_on_and_on_is_named(mill: Tidemill) -> None:
    @mill.job("ouroboros")
    async def ouroboros() -> None:
        await ouroboros.enqueue()

    async with Harness(mill, most_executions=50) as h:
        await ouroboros.enqueue()
        with pytest.raises(Runaway, match="50 executions, 51 of them of ouroboros"):
            await h.run_until_idle()
        assert {job.state.value for job in await h.jobs()} == {"succeeded", "ready"}


async def test_a_year_of_days_takes_no_time(mill: Tidemill, h: Harness) -> None:
    @mill.job("daily")
    async def daily() -> None:
        await daily.with_options(delay="1d").enqueue()

    await daily.enqueue()
    assert await h.run_for(days=364.5) == 365


async def test_a_payload_nobody_can_read_is_quarantined_loudly(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job(number: int) -> None:
        """Do nothing."""

    await mill.client.perform(
        Enqueue((NewJob(id=JobId(new_id()), wire_name="job", payload=b'{"number":"one"}'),))
    )
    with pytest.raises(JobFailed, match=r"job .* ended quarantined \(payload\).*number"):
        await h.run_until_idle()


async def test_time_and_settings_that_cannot_work_are_refused(mill: Tidemill, h: Harness) -> None:
    for start in ("yesterday", "2026-03-01T00:00", datetime(2026, 3, 1)):  # noqa: DTZ001 - the fault
        with pytest.raises(ConfigurationError, match="start="):
            Harness(mill, start=start)
    with pytest.raises(ConfigurationError, match="concurrency=0"):
        Harness(mill, concurrency=0)
    with pytest.raises(ConfigurationError, match="at least one queue"):
        Harness(mill, queues=[])
    with pytest.raises(ConfigurationError, match="cannot be moved back"):
        await h.advance(days=-1)
    with pytest.raises(ConfigurationError, match="by='5' is not a duration"):
        await h.advance("5")
    assert h.now == START


async def test_a_start_may_be_in_any_zone(mill: Tidemill) -> None:
    async with Harness(mill, start="2026-03-01T02:00+02:00") as h:
        assert h.now == START


async def test_a_harness_that_is_not_open_says_so(mill: Tidemill) -> None:
    @mill.job("job")
    async def job() -> None:
        """Do nothing."""

    harness = Harness(mill)
    for verb in (harness.run_until_idle, harness.advance, lambda: harness.perform(job)):
        with pytest.raises(WrongContext, match="not open"):
            await verb()
    async with harness:
        with pytest.raises(WrongContext, match="entered before"):
            harness.__enter__()
    with pytest.raises(WrongContext, match="not open"):
        await harness.run_until_idle()
    with pytest.raises(WrongContext, match="entered before"):
        harness.__enter__()
