"""Completing a job in the handler's own transaction, over every kind of transaction (D8)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.adapters.postgres_proxy import Cable
from tests.bridges.conftest import Shop, Where
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE, Open, settled
from tests.waiting import until

from tidemill import Bounds, JobContext, Retry
from tidemill.core.endings import COMPLETION_ROLLED_BACK
from tidemill.errors import AlreadyCompleted, BoundExceeded, StaleAttempt, TransactionRefused
from tidemill.store.monitor import GetJob, ListWorkers
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails
from tidemill.values.states import JobState

AT_ONCE = Retry.immediate(max_attempts=3)
ORDER = "INSERT INTO orders (name) VALUES ('o-1')"


class BadStone(Exception):
    """What a handler of a test raises."""


def stored(shop: Shop, job_id: JobId) -> JobDetails:
    details = shop.store.perform_sync(GetJob(job_id))
    assert details is not None
    return details


async def run_one(shop: Shop, handler: Any) -> JobDetails:
    """Enqueue one job of a handler, run it to its end, and answer what is stored of it."""
    ref = await shop.mill.job("orders.post", retry=AT_ONCE)(handler).enqueue()
    async with shop.mill.worker(poll_interval="50ms", lease="2s", concurrency=1):
        await shop.mill.client.wait_for_end(ref.id, 30)
        await until(lambda: not stored(shop, ref.id).record.unsettled)
    return stored(shop, ref.id)


async def complete(ctx: JobContext, tx: Open, output: object = None) -> None:
    """Complete the job as the application would: awaited if the transaction is."""
    await settled(ctx.complete_in(tx.tx, output))


def errors(job: JobDetails) -> list[str]:
    return [each.error.kind for each in job.attempts if each.error is not None]


@pytest.fixture(params=["on_sqlite: aiosqlite", "on_postgres: psycopg async"])
def one_of_each(request: pytest.FixtureRequest) -> Where:
    """One kind of transaction on each database, for what does not depend on the kind."""
    database, kind = request.param.split(": ")
    return Where(request.getfixturevalue(database), (ON_SQLITE | ON_POSTGRES)[kind])


async def test_a_commit_leaves_the_writes_and_the_success(where: Where) -> None:
    async def post(ctx: JobContext) -> int:
        async with where.transaction() as tx:
            await tx.execute(ORDER)
            ctx.add_tag("posted", "yes")
            await complete(ctx, tx, 7)
            await tx.commit()
        return 8

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 1)
    assert (job.output, job.attempts) == (b"7", ())
    assert {(tag.key, tag.value) for tag in job.tags} == {("posted", "yes")}


async def test_a_rollback_that_the_handler_swallows_leaves_neither(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        async with where.transaction() as tx:
            await tx.execute(ORDER)
            await complete(ctx, tx)
            await (tx.rollback() if ctx.attempt == 1 else tx.commit())

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 2)
    assert errors(job) == [COMPLETION_ROLLED_BACK]


async def test_a_rollback_by_an_error_leaves_the_error(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        async with where.transaction() as tx:
            await tx.execute(ORDER)
            await complete(ctx, tx)
            if ctx.attempt == 1:
                await tx.rollback()
                raise BadStone
            await tx.commit()

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.attempt, job.record.failures) == (2, 1)
    assert [kind.rpartition(".")[2] for kind in errors(job)] == ["BadStone"]


async def test_an_error_after_the_commit_changes_nothing(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        async with where.transaction() as tx:
            await tx.execute(ORDER)
            await complete(ctx, tx)
            await tx.commit()
        raise BadStone

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 1)
    assert job.attempts == ()


async def test_a_transaction_that_is_tried_again_completes_the_same_attempt(where: Where) -> None:
    async def post(ctx: JobContext) -> None:
        for attempt in range(2):
            async with where.transaction() as tx:
                await tx.execute(ORDER)
                await complete(ctx, tx, attempt)
                await (tx.commit() if attempt else tx.rollback())

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.attempt, job.record.failures, job.output) == (1, 0, b"1")


async def test_a_second_try_after_a_commit_is_refused_so_that_it_writes_nothing(
    where: Where,
) -> None:
    """As after a COMMIT whose answer was lost."""
    told: list[str] = []

    async def post(ctx: JobContext) -> None:
        for _ in range(2):
            async with where.transaction() as tx:
                await tx.execute(ORDER)
                try:
                    await complete(ctx, tx)
                except AlreadyCompleted as error:
                    told.append(str(error))
                    await tx.rollback()
                else:
                    await tx.commit()

    job = await run_one(where.shop, post)
    assert where.shop.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 1)
    (message,) = told
    assert "is completed already" in message


TAKEN_AWAY = {
    "sqlite": "UPDATE tidemill_jobs SET attempt = attempt + 1",
    "postgres": "UPDATE tidemill.jobs SET attempt = attempt + 1",
}
LAPSED = {
    "sqlite": "UPDATE tidemill_workers SET lease_expires_at = 0",
    "postgres": "UPDATE tidemill.workers SET lease_expires_at = 'epoch'",
}


def spoken(where: Where, sql: dict[str, str]) -> str:
    return sql["postgres" if where.shop.place.startswith("postgresql") else "sqlite"]


@pytest.mark.parametrize("how", [TAKEN_AWAY, LAPSED], ids=["taken away", "lapsed"])
async def test_a_stale_attempt_is_refused_so_that_it_writes_nothing(
    one_of_each: Where, how: dict[str, str]
) -> None:
    told: list[StaleAttempt] = []

    async def post(ctx: JobContext) -> None:
        if not told:
            async with one_of_each.transaction() as tx:
                await tx.execute(spoken(one_of_each, how))
                await tx.commit()
        async with one_of_each.transaction() as tx:
            await tx.execute(ORDER)
            try:
                await complete(ctx, tx)
            except StaleAttempt as error:
                told.append(error)
                await tx.rollback()
                raise
            await tx.commit()

    job = await run_one(one_of_each.shop, post)
    assert one_of_each.shop.orders() == ["o-1"]
    assert (job.record.state, len(told)) == (JobState.SUCCEEDED, 1)
    assert "cannot complete it" in str(told[0])


async def test_a_handler_that_goes_on_after_its_commit_is_not_taken_for_lost(
    one_of_each: Where,
) -> None:
    seen: list[bool] = []

    async def post(ctx: JobContext) -> None:
        async with one_of_each.transaction() as tx:
            await complete(ctx, tx)
            await tx.commit()
        before = expires_at(one_of_each.shop)
        for _ in range(3):
            await until(lambda known=before: expires_at(one_of_each.shop) > known)
            before = expires_at(one_of_each.shop)
        seen.append(ctx.cancelled)

    job = await run_one(one_of_each.shop, post)
    assert seen == [False]
    assert job.record.state is JobState.SUCCEEDED


def expires_at(shop: Shop) -> Any:
    (worker,) = shop.store.perform_sync(ListWorkers())
    return worker.lease_expires_at


async def test_a_plain_handler_completes_in_a_sync_transaction(on_postgres: Shop) -> None:
    def post(ctx: JobContext) -> None:
        with psycopg.connect(on_postgres.place) as connection:
            connection.execute(ORDER)
            ctx.complete_in(connection, 7)

    job = await run_one(on_postgres, post)
    assert on_postgres.orders() == ["o-1"]
    assert (job.record.state, job.output) == (JobState.SUCCEEDED, b"7")


async def test_a_serialization_failure_reaches_the_handler_which_tries_again(
    on_postgres: Shop,
) -> None:
    failures: list[str] = []

    def post(ctx: JobContext) -> None:
        while True:
            try:
                with psycopg.connect(on_postgres.place) as connection:
                    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                    connection.execute("SELECT count(*) FROM orders")
                    if not failures:
                        touch(on_postgres, ctx.job_id)
                    connection.execute(ORDER)
                    ctx.complete_in(connection)
            except psycopg.errors.SerializationFailure as error:
                failures.append(str(error.sqlstate))
            else:
                return

    job = await run_one(on_postgres, post)
    assert failures == ["40001"]
    assert on_postgres.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 1)


def touch(shop: Shop, job_id: JobId) -> None:
    """Have another transaction write the job's row, as an operator's request would."""
    with psycopg.connect(shop.place) as other:
        other.execute("UPDATE tidemill.jobs SET priority = 1 WHERE id = %s", (job_id,))


async def test_a_transaction_elsewhere_is_refused(on_postgres: Shop, on_sqlite: Shop) -> None:
    async def post(ctx: JobContext) -> None:
        ctx.complete_in(sqlite3.connect(on_sqlite.place))

    job = await run_one(on_postgres, post)
    assert set(errors(job)) == {f"tidemill.errors.{TransactionRefused.__name__}"}
    assert job.record.state is JobState.DEAD


async def test_an_output_over_its_bound_is_refused_before_anything_is_written(
    on_sqlite: Shop,
) -> None:
    async def post(ctx: JobContext) -> None:
        async with Where(on_sqlite, opener()).transaction() as tx:
            await complete(ctx, tx, "x" * Bounds().output_bytes)

    job = await run_one(on_sqlite, post)
    assert set(errors(job)) == {f"tidemill.errors.{BoundExceeded.__name__}"}


def opener() -> Any:
    return ON_SQLITE["sqlite3"]


@pytest.fixture
def cable(on_postgres: Shop) -> Iterator[Cable]:
    """What the handler's connection goes through."""
    cable = Cable(on_postgres.place)
    yield cable
    cable.close()


@pytest.mark.parametrize("committed", [True, False])
async def test_whether_a_commit_without_an_answer_was_done_is_asked_of_the_row(
    on_postgres: Shop, cable: Cable, committed: bool
) -> None:
    def post(ctx: JobContext) -> None:
        with psycopg.connect(cable.url) as connection:
            connection.execute(ORDER)
            ctx.complete_in(connection)
            if ctx.attempt == 1:
                cable.cut_at(b"COMMIT", after=committed)

    job = await run_one(on_postgres, post)
    assert cable.cuts == 1
    assert on_postgres.orders() == ["o-1"]
    assert job.record.state is JobState.SUCCEEDED
    assert (job.record.attempt, len(errors(job))) == ((1, 0) if committed else (2, 1))


@pytest.mark.parametrize("committed", [True, False])
async def test_a_transaction_tried_again_after_a_lost_answer_writes_nothing_twice(
    on_postgres: Shop, cable: Cable, committed: bool
) -> None:
    told: list[str] = []

    def post(ctx: JobContext) -> None:
        cable.cut_at(b"COMMIT", after=committed)
        for _ in range(2):
            try:
                with psycopg.connect(cable.url) as connection:
                    connection.execute(ORDER)
                    ctx.complete_in(connection)
            except (psycopg.OperationalError, AlreadyCompleted) as error:
                told.append(type(error).__name__)

    job = await run_one(on_postgres, post)
    assert told == ["OperationalError", *(["AlreadyCompleted"] if committed else [])]
    assert on_postgres.orders() == ["o-1"]
    assert (job.record.state, job.record.attempt) == (JobState.SUCCEEDED, 1)
