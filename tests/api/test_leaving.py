"""`ctx.enqueue`: jobs that are stored with an attempt's success, or not at all (clauses D2, D3)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.api.saying import Saying, context, run_in_process
from tests.waiting import until

from tidemill import Bounds, JobContext, JobRef, Retry, Tidemill
from tidemill.client import Client
from tidemill.errors import (
    BoundExceeded,
    ConfigurationError,
    EncodingError,
    InvalidValue,
    NotFound,
    ParentsNotSupported,
    WrongContext,
)
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs, GetJob
from tidemill.testing import Harness
from tidemill.values.jobs import JobRecord, NewJob

ENOUGH = 60


class Shop:
    """An app whose job `pack` runs what a test gives it, and leaves jobs `ship`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "jobs.db"
        self.mill = mill = Tidemill(f"sqlite:///{self.path}")

        @mill.job("ship", queue="vans")
        async def ship(order: str) -> str:
            return f"shipped {order}"

        self.ship = ship

    async def run(self, handler: Any, **options: Any) -> JobRef[Any]:
        """Enqueue one job of a handler, and run it to its end."""
        pack = self.mill.job("pack", retry=Retry.immediate(max_attempts=2))(handler)
        ref = await pack.with_options(**options).enqueue()
        async with self.mill.worker():
            await self.mill.client.wait_for_end(ref.id, ENOUGH)
        return ref

    def record(self, ref: Any) -> JobRecord:
        details = self.mill.store.perform_sync(GetJob(ref.id))
        assert details is not None
        return details.record

    def counted(self) -> set[tuple[str, str, int]]:
        found = self.mill.store.perform_sync(CountJobs())
        return {(each.queue, each.state.value, each.count) for each in found}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.mill.close()


async def test_a_coroutine_leaves_jobs_that_are_there_when_it_has_succeeded(shop: Shop) -> None:
    left: list[JobRef[str]] = []
    seen: list[set[tuple[str, str, int]]] = []

    async def pack(ctx: JobContext) -> None:
        left.append(ctx.enqueue(shop.ship.bind("o-1")))
        left.append(ctx.enqueue(shop.ship.with_options(delay="1h").bind("o-2")))
        seen.append(shop.counted())

    await shop.run(pack)
    assert seen == [{("default", "running", 1)}]
    assert shop.counted() == {
        ("default", "succeeded", 1), ("vans", "ready", 1), ("vans", "scheduled", 1),
    }  # fmt: skip
    async with shop.mill.worker(queues=["vans"]):
        assert await left[0].result(timeout=ENOUGH) == "shipped o-1"
    assert shop.record(left[1]).due_at > shop.record(left[0]).due_at


async def test_an_attempt_that_fails_leaves_nothing_and_the_next_one_its_own(shop: Shop) -> None:
    left: list[JobRef[str]] = []

    def pack(ctx: JobContext) -> None:
        left.append(ctx.enqueue(shop.ship.bind("o-1")))
        if ctx.attempt == 1:
            raise OSError

    await shop.run(pack)
    assert shop.counted() == {("default", "succeeded", 1), ("vans", "ready", 1)}
    assert shop.record(left[1]).queue == "vans"
    with pytest.raises(NotFound):
        await left[0].result(timeout=ENOUGH)


@pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")
def test_a_handler_in_a_process_leaves_jobs_as_others_do(tmp_path: Path) -> None:
    handler = """
    ctx.enqueue(ship.bind(f"attempt {ctx.attempt}"))
    if ctx.attempt == 1:
        raise LookupError("no van")
    """
    job = run_in_process(tmp_path, handler)
    assert job["errors"] == ["no van"]
    assert job["children"] == [["acme", "ready"]]


async def test_the_key_of_the_job_is_free_for_one_that_it_leaves(shop: Shop) -> None:
    left: list[JobRef[str]] = []

    async def pack(ctx: JobContext) -> None:
        left.append(ctx.enqueue(shop.ship.with_options(idempotency_key="once").bind("next")))

    ref = await shop.run(pack, idempotency_key="once")
    assert shop.record(ref).state == "succeeded"
    assert shop.record(left[0]).idempotency_key == "once"


async def test_where_another_active_job_has_the_key_the_reference_leads_to_nothing(
    shop: Shop,
) -> None:
    keyed = shop.ship.with_options(idempotency_key="once")
    first = await keyed.enqueue("first")
    left: list[JobRef[str]] = []

    async def pack(ctx: JobContext) -> None:
        left.append(ctx.enqueue(keyed.bind("second")))

    ref = await shop.run(pack)
    assert shop.record(ref).state == "succeeded"
    assert shop.counted() == {("default", "succeeded", 1), ("vans", "ready", 1)}
    assert shop.record(first).state == "ready"
    with pytest.raises(NotFound):
        await left[0].result(timeout=ENOUGH)


async def test_tenant_and_trace_are_handed_on_also_from_a_thread_of_the_handlers(
    shop: Shop,
) -> None:
    left: list[JobRef[str]] = []

    @shop.mill.job("parent")
    async def parent(ctx: JobContext) -> None:
        left.append(ctx.enqueue(shop.ship.bind("o-1")))
        left.append(ctx.enqueue(shop.ship.with_options(tenant="other").bind("o-2")))
        loop = asyncio.get_running_loop()
        left.append(await loop.run_in_executor(None, ctx.enqueue, shop.ship.bind("o-3")))

    async with Harness(shop.mill) as harness:
        request = parent.bind().request()
        traced = NewJob(id=request.id, wire_name="parent", tenant="acme", trace_context="00-trace")
        await shop.mill.client.perform(Enqueue((traced,)))
        await harness.run_until_idle()
        records = [(await harness.job(ref)).record for ref in left]
    assert [record.tenant for record in records] == ["acme", "other", "acme"]
    assert {record.trace_context for record in records} == {"00-trace"}


async def test_what_was_left_before_a_completion_commits_with_it(shop: Shop) -> None:
    async def pack(ctx: JobContext) -> None:
        with closing(sqlite3.connect(shop.path, isolation_level=None)) as tx:
            tx.execute("BEGIN IMMEDIATE")
            ctx.enqueue(shop.ship.bind(f"attempt {ctx.attempt}"))
            ctx.complete_in(tx)
            with pytest.raises(WrongContext, match=r"Call ctx\.enqueue before ctx\.complete_in"):
                ctx.enqueue(shop.ship.bind("late"))
            tx.execute("ROLLBACK" if ctx.attempt == 1 else "COMMIT")

    shop.mill.store.migrate()
    await shop.run(pack)
    async with shop.mill.worker(queues=["vans"]):
        await until(lambda: ("vans", "succeeded", 1) in shop.counted())
    assert shop.counted() == {("default", "succeeded", 1), ("vans", "succeeded", 1)}


@pytest.mark.parametrize("error", [None, OSError("the tape ran out")])
async def test_after_the_end_nothing_can_be_left(shop: Shop, error: Exception | None) -> None:
    kept: list[JobContext] = []

    async def pack(ctx: JobContext) -> None:
        kept.append(ctx)
        if error is not None and ctx.attempt == 1:
            raise error

    await shop.run(pack)
    with pytest.raises(WrongContext, match=r"Attempt 1 of job .* has ended: nothing can be"):
        kept[0].enqueue(shop.ship.bind("late"))
    assert shop.counted() == {("default", "succeeded", 1)}


async def test_a_job_of_another_app_is_refused_with_the_way_to_enqueue_it(
    shop: Shop, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")

    async def pack(ctx: JobContext) -> None:
        with pytest.raises(ConfigurationError, match=r"'ship' belongs to another app than this"):
            ctx.enqueue(other.ship.bind("o-1"))

    assert shop.record(await shop.run(pack)).failures == 0
    other.mill.close()


def test_what_is_no_call_is_refused_with_what_to_write(shop: Shop) -> None:
    saying = Saying()
    ctx: Any = context(saying)
    for wrong in (shop.ship, shop.ship.bind, "ship", None):
        with pytest.raises(ConfigurationError, match=r"bind\("):
            ctx.enqueue(wrong)
    with pytest.raises(EncodingError):
        ctx.enqueue(shop.ship.bind(object()))
    assert saying.left() == ()


def test_what_no_store_could_hold_is_refused_where_it_is_left(shop: Shop) -> None:
    saying = Saying()
    ctx = context(saying, Bounds(children=1, payload_bytes=20))
    with pytest.raises(BoundExceeded, match="Payload is "):
        ctx.enqueue(shop.ship.bind("x" * 30))
    with pytest.raises(InvalidValue, match="NUL"):
        ctx.enqueue(shop.ship.with_options(tenant="a\0").bind("o-1"))
    parent = JobRef(ctx.job_id, False, Client(lambda: shop.mill.store), lambda _: None)
    with pytest.raises(ParentsNotSupported):
        ctx.enqueue(shop.ship.with_options(after=[parent]).bind("o-1"))
    ref = ctx.enqueue(shop.ship.bind("o-1"))
    with pytest.raises(BoundExceeded, match=r"left with one outcome is 2 jobs, over .* of 1 jobs"):
        ctx.enqueue(shop.ship.bind("o-2"))
    assert [child.id for child in saying.left()] == [ref.id]
