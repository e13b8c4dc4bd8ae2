"""Jobs that a handler leaves with its success, in the harness."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemill import JobContext, JobHandle, JobRef, Retry, Tidemill
from tidemill.errors import NotFound, WrongContext
from tidemill.testing import Harness

MINUTE = timedelta(minutes=1)


@pytest.fixture
def ship(mill: Tidemill) -> JobHandle[[str], str]:
    @mill.job("ship", retry=Retry.fixed(MINUTE, max_attempts=2, jitter=0.5))
    async def ship(order: str) -> str:
        if order == "lost":
            raise OSError
        return f"shipped {order}"

    return ship


async def test_what_a_handler_leaves_is_run_and_its_reference_leads_to_it(
    mill: Tidemill, h: Harness, ship: Any
) -> None:
    left: list[JobRef[str]] = []

    @mill.job("pack")
    async def pack(ctx: JobContext, order: str) -> None:
        left.append(ctx.enqueue(ship.bind(order)))

    await pack.enqueue("o-1")
    assert await h.run_until_idle() == 2
    assert await left[0].result() == "shipped o-1"
    (found,) = h.enqueued(ship, order="o-1")
    assert found.id == left[0].id


async def test_what_an_attempt_without_success_leaves_was_not_enqueued(
    mill: Tidemill, h: Harness, ship: Any
) -> None:
    left: list[JobRef[str]] = []

    @mill.job("pack", retry=Retry.immediate(max_attempts=2))
    def pack(ctx: JobContext) -> None:
        left.append(ctx.enqueue(ship.bind(f"attempt {ctx.attempt}")))
        if ctx.attempt == 1:
            raise OSError

    await pack.enqueue()
    assert await h.run_until_idle() == 3
    h.not_enqueued(ship, order="attempt 1")
    assert len(h.enqueued(ship)) == 1
    with pytest.raises(NotFound):
        await h.job(left[0])


async def test_a_delay_counts_from_the_success_and_backoffs_have_no_jitter(
    mill: Tidemill, h: Harness, ship: Any
) -> None:
    @mill.job("pack")
    async def pack(ctx: JobContext) -> None:
        ctx.enqueue(ship.with_options(delay="1h").bind("lost"))
        await h.advance(minutes=5)

    await pack.enqueue()
    assert await h.run_until_idle() == 1
    (child,) = h.enqueued(ship)
    assert child.due_at == datetime(2026, 3, 1, 1, 5, tzinfo=UTC)
    await h.advance(hours=1)
    assert await h.run_until_idle() == 1
    failed_at = h.now
    assert (await h.job(child)).due_at == failed_at + MINUTE


async def test_a_performed_handler_leaves_its_jobs_where_they_are(
    mill: Tidemill, h: Harness, ship: Any
) -> None:
    @mill.job("pack")
    def pack(ctx: JobContext) -> str:
        return str(ctx.enqueue(ship.bind("o-1")).id)

    left = await h.perform(pack)
    (found,) = h.enqueued(ship)
    assert (str(found.id), found.state) == (left, "ready")
    h.not_enqueued(pack)


def test_the_same_in_a_test_without_a_loop(mill: Tidemill, h: Harness, ship: Any) -> None:
    @mill.job("pack")
    def pack(ctx: JobContext) -> None:
        ctx.enqueue(ship.with_options(queue="vans").bind("o-1"))

    pack.with_options(tenant="acme").sync.enqueue()
    assert h.sync.run_until_idle() == 2
    (child,) = h.enqueued(ship)
    assert (child.state, child.queue, child.record.tenant) == ("succeeded", "vans", "acme")
    assert h.sync.perform(pack) is None
    assert len(h.enqueued(ship)) == 2


async def test_what_is_left_before_a_completion_goes_with_it_and_nothing_after_it(
    mill: Tidemill, h: Harness, ship: Any
) -> None:
    @mill.job("pack", retry=Retry.never())
    def pack(ctx: JobContext, *, late: bool) -> None:
        with closing(sqlite3.connect(":memory:")) as tx:
            ctx.enqueue(ship.bind("in time"))
            ctx.complete_in(tx)
            if late:
                ctx.enqueue(ship.bind("late"))

    await pack.enqueue(late=False)
    assert await h.run_until_idle() == 2
    assert len(h.enqueued(ship, order="in time")) == 1
    with pytest.raises(WrongContext, match=r"Call ctx\.enqueue before ctx\.complete_in"):
        await h.perform(pack, late=True)
    h.not_enqueued(ship, order="late")
