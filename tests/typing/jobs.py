"""A user's jobs: what the checkers know of them after the decorator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from tidemill import (
    BoundJob,
    Effect,
    JobContext,
    JobGroup,
    JobHandle,
    JobRef,
    JobState,
    Retry,
    Tidemill,
)
from tidemill.values.notes import JobLine, JobProgress, LogPage

mill = Tidemill()
group = JobGroup("orders.")


@dataclass
class Receipt:
    """What a capture answers."""

    amount: int


@mill.job("payments.capture", queue="payments", retry=Retry.fixed("1s", retry_on=(OSError,)))
async def capture(context: JobContext, payment_id: str, *, amount: int = 1) -> Receipt:
    """A coroutine that takes the context."""
    return Receipt(amount)


@mill.job("payments.refund", timeout="30s")
async def refund(payment_id: str) -> int:
    """A coroutine that does not."""
    return 1


@group.job("render")
def render(context: JobContext, order: int) -> str:
    """A plain function that takes the context."""
    return str(order)


@group.job("count", extra="ignore", executor="thread")
def count(words: list[str]) -> None:
    """A plain function that does not."""


async def enqueuing() -> None:
    """References carry the type of the result."""
    assert_type(await capture.enqueue("p-1"), JobRef[Receipt])
    assert_type(await capture.enqueue("p-1", amount=2), JobRef[Receipt])
    assert_type(await refund.enqueue(payment_id="p-1"), JobRef[int])
    assert_type(await render.enqueue(1), JobRef[str])
    assert_type(await count.enqueue(["a"]), JobRef[None])
    assert_type(await (await capture.enqueue("p-1")).result(timeout=10), Receipt)
    assert_type(capture.sync.enqueue("p-1").sync.result("10s"), Receipt)


async def options() -> None:
    """Options keep the parameters and the result."""
    parent = await refund.enqueue("p-1")
    later = capture.with_options(
        queue="slow",
        delay="2h",
        expires=timedelta(days=1),
        tags=["vip", ("order", "42")],
        after=[parent],
    )
    assert_type(await later.enqueue("p-1", amount=3), JobRef[Receipt])
    assert_type(await later(_context(), "p-1"), Receipt)


async def looking(ref: JobRef[Receipt]) -> None:
    """A job and a line of a list answer alike."""
    assert_type((await mill.jobs.get(ref)).state, JobState)
    assert_type((await mill.jobs.list()).jobs[0].state, JobState)
    assert_type((await mill.jobs.cancel(ref, actor="ada")).effect, Effect)


async def noting(ref: JobRef[Receipt]) -> None:
    """What handlers say is read by name."""
    page = await mill.jobs.log(ref, limit=10)
    assert_type(page, LogPage)
    assert_type(mill.jobs.sync.log(ref.id, cursor=page.next_cursor).lines, tuple[JobLine, ...])
    assert_type(page.lines[0].values, dict[str, object])
    assert_type((await mill.jobs.get(ref)).record.progress, JobProgress | None)


@mill.job("payments.settle")
async def settle(context: JobContext, payments: list[str]) -> int:
    """What is left with the success has the type of its own result."""
    for number, payment in enumerate(payments):
        context.progress(number / len(payments), payment)
        context.log("captured", payment=payment, receipts=[Receipt(1)])
        assert_type(context.enqueue(capture.bind(payment)), JobRef[Receipt])
    context.progress(None)
    later = render.with_options(delay="1h", idempotency_key="once")
    ref = context.enqueue(later.bind(1))
    assert_type(ref, JobRef[str])
    wider: JobRef[object] = context.enqueue(count.bind([]))
    await wider.result(timeout=1)
    return len(payments)


async def many() -> None:
    """A batch of one kind keeps its result; handles may be passed around."""
    assert_type(
        await mill.enqueue_many([capture.bind(each) for each in ("a", "b")]),
        list[JobRef[Receipt]],
    )
    mixed: list[BoundJob[object]] = [capture.bind("a"), render.bind(1), count.bind([])]
    assert_type(await mill.enqueue_many(mixed), list[JobRef[object]])
    for ref in await mill.enqueue_many([capture.bind("a"), refund.bind("b")]):
        await ref.result()
    mill.sync.enqueue_many([capture.bind("a"), count.bind([])])


async def calling() -> None:
    """A handle is still the function, for unit tests."""
    assert_type(await capture(_context(), "p-1", amount=2), Receipt)
    assert_type(await refund("p-1"), int)
    assert_type(render(_context(), 1), str)
    count(["a"])


def _takes_any(handle: JobHandle[[str], int]) -> None: ...


def passing() -> None:
    """A handle is a `JobHandle` of its parameters and its result."""
    _takes_any(refund)


def _context() -> JobContext:
    raise NotImplementedError
