"""What a handler's job hands on to the jobs that the handler enqueues (clause F6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidemill import JobContext, Tidemill
from tidemill.shell.ambient import ambient
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import GetJob
from tidemill.testing import Harness
from tidemill.values.jobs import JobRecord, NewJob


@pytest.fixture
def app() -> Tidemill:
    return Tidemill()


async def record(app: Tidemill, ref: Any) -> JobRecord:
    details = await app.client.perform(GetJob(ref.id))
    assert details is not None
    return details.record


async def test_a_coroutine_hands_its_tenant_on(app: Tidemill) -> None:
    refs: list[Any] = []

    @app.job("child")
    async def child() -> None: ...

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        refs.append(await child.enqueue())
        refs.append(await child.with_options(tenant="other").enqueue())
        refs.extend(await app.enqueue_many([child.bind()]))

    async with Harness(app) as harness:
        await parent.with_options(tenant="acme").enqueue()
        await harness.run_until_idle()
        tenants = [(await record(app, ref)).tenant for ref in refs]
    assert tenants == ["acme", "other", "acme"]


async def test_a_plain_handler_hands_its_tenant_on(app: Tidemill) -> None:
    refs: list[Any] = []

    @app.job("child")
    async def child() -> None: ...

    @app.job("parent")
    def parent() -> None:
        refs.append(child.sync.enqueue())

    async with Harness(app) as harness:
        await parent.with_options(tenant="acme").enqueue()
        await harness.run_until_idle()
        assert (await record(app, refs[0])).tenant == "acme"


async def test_the_trace_is_handed_on(app: Tidemill) -> None:
    refs: list[Any] = []

    @app.job("child")
    async def child() -> None: ...

    @app.job("parent")
    async def parent() -> None:
        refs.append(await child.enqueue())

    async with Harness(app) as harness:
        request = parent.bind().request()
        traced = NewJob(id=request.id, wire_name="parent", trace_context="00-trace")
        await app.client.perform(Enqueue((traced,)))
        await harness.run_until_idle()
        assert (await record(app, refs[0])).trace_context == "00-trace"


async def test_attempts_side_by_side_see_each_their_own(app: Tidemill) -> None:
    both = asyncio.Barrier(2)
    seen: dict[str | None, str | None] = {}

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        await both.wait()
        seen[ctx.tenant] = ambient().tenant

    async with Harness(app, concurrency=2) as harness:
        for tenant in ("acme", "zenith"):
            await parent.with_options(tenant=tenant).enqueue()
        await harness.run_until_idle()
    assert seen == {"acme": "acme", "zenith": "zenith"}
    assert ambient().tenant is None


async def test_outside_a_handler_there_is_no_tenant(app: Tidemill) -> None:
    @app.job("child")
    async def child() -> None: ...

    async with Harness(app):
        assert (await record(app, await child.enqueue())).tenant is None
