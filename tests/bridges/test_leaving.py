"""Jobs that a handler leaves and completes with, in a transaction of its own (D2, D8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.bridges.conftest import Shop, Where
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE
from tests.bridges.test_completing import ORDER, complete, run_one

from tidemill import JobContext
from tidemill.errors import WrongContext
from tidemill.values.jobs import JobRecord
from tidemill.values.states import JobState
from tidemill.values.tags import Tag


@pytest.fixture(params=["on_sqlite: aiosqlite", "on_postgres: psycopg async"])
def where(request: pytest.FixtureRequest) -> Where:
    database, kind = request.param.split(": ")
    return Where(request.getfixturevalue(database), (ON_SQLITE | ON_POSTGRES)[kind])


def left(shop: Shop) -> list[JobRecord]:
    """The jobs that the handler left."""
    return [job for job in shop.jobs() if job.wire_name == "orders.capture"]


async def test_what_is_left_until_the_success_is_written_goes_with_it(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        async with where.transaction() as tx:
            await tx.execute(ORDER)
            done: Any = ctx.complete_in(tx.tx)
            ctx.enqueue(where.shop.capture.with_options(queue="later").bind("p-1"))
            ctx.add_tag("late")
            await done
            with pytest.raises(WrongContext, match=r"before ctx\.complete_in"):
                ctx.enqueue(where.shop.capture.bind("p-2"))
            await tx.commit()

    job = await run_one(where.shop, post)
    assert (job.state, job.tags) == (JobState.SUCCEEDED, {Tag("late")})
    assert [job.queue for job in left(where.shop)] == ["later"]


async def test_what_was_left_before_a_transaction_goes_with_the_one_that_commits(
    where: Where,
) -> None:
    async def post(ctx: JobContext) -> None:
        ctx.enqueue(where.shop.capture.with_options(queue="later").bind("p-1"))
        async with where.transaction() as tx:
            await complete(ctx, tx)
            await tx.rollback()
        async with where.transaction() as tx:
            await complete(ctx, tx)
            await tx.commit()

    await run_one(where.shop, post)
    assert len(left(where.shop)) == 1


async def test_a_rolled_back_completion_leaves_nothing(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        if ctx.attempt > 1:
            return
        ctx.enqueue(where.shop.capture.with_options(queue="later").bind("p-1"))
        async with where.transaction() as tx:
            await complete(ctx, tx)
            await tx.rollback()

    job = await run_one(where.shop, post)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert left(where.shop) == []


class Name(str):
    """Text of a class of the user's."""

    __slots__ = ()


class Wait(timedelta):
    """A duration of a class of the user's."""


async def test_whatever_can_be_enqueued_can_be_left_with_a_completion(where: Where) -> None:
    """Also values of other classes, and instants in zones whose offsets have seconds."""
    old_zone = timezone(timedelta(minutes=55, seconds=33))
    due = datetime(2030, 1, 1, 12, 0, 0, 7, tzinfo=old_zone)

    async def post(ctx: JobContext) -> None:
        options = where.shop.capture.with_options(
            queue=Name("later"), tenant=Name("acme"), idempotency_key=Name("k"), tags=[Name("vip")]
        )
        ctx.enqueue(options.with_options(at=due).bind("p-1"))
        ctx.enqueue(where.shop.capture.with_options(delay=Wait(days=400)).bind("p-2"))
        async with where.transaction() as tx:
            await complete(ctx, tx)
            await tx.commit()

    job = await run_one(where.shop, post)
    keyed = next(each for each in left(where.shop) if each.idempotency_key)
    waiting = next(each for each in left(where.shop) if not each.idempotency_key)
    assert (keyed.queue, keyed.tenant, keyed.idempotency_key) == ("later", "acme", "k")
    assert keyed.due_at == due.astimezone(UTC)
    assert job.finished_at is not None
    assert waiting.due_at == job.finished_at + timedelta(days=400)
