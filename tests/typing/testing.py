"""A user's tests: what the checkers know of a harness."""

from __future__ import annotations

from typing import assert_type

from tidemill import JobContext, Tidemill
from tidemill.testing import Harness, JobView, Manifest
from tidemill.values.notes import JobLine, JobProgress

mill = Tidemill()


@mill.job("capture")
async def capture(context: JobContext, payment: str, *, amount: int = 1) -> int:
    """A coroutine."""
    return amount


@mill.job("render")
def render(order: int) -> str:
    """A plain function."""
    return str(order)


async def in_a_loop(tidemill: Harness) -> None:
    """Awaited verbs; `perform` has the parameters and the result of the job."""
    assert_type(await tidemill.run_until_idle(), int)
    assert_type(await tidemill.run_for("1h", raise_errors=False), int)
    await tidemill.advance(days=7)
    assert_type(await tidemill.perform(capture, "p-1", amount=2), int)
    assert_type(await tidemill.perform(render, 1), str)
    ref = await capture.enqueue("p-1")
    assert_type(await tidemill.job(ref), JobView)
    assert_type(await tidemill.jobs(state="dead", handle=capture), list[JobView])
    assert_type(tidemill.enqueued(capture, payment="p-1"), list[JobView])
    await tidemill.cancel(ref.id)
    (view,) = tidemill.enqueued(capture)
    assert_type(view.progress, JobProgress | None)
    assert_type(view.log, tuple[JobLine, ...])
    assert_type(await tidemill.job(view), JobView)
    await tidemill.cancel(view)
    async with Harness(mill, queues={"a": 1}, inline=True) as other:
        assert_type(other, Harness)


def without_a_loop(tidemill: Harness) -> None:
    """The same with `.sync` before the verb."""
    assert_type(tidemill.sync.run_until_idle(), int)
    assert_type(tidemill.sync.perform(capture, "p-1"), int)
    assert_type(tidemill.sync.job(render.sync.enqueue(1)), JobView)
    with Harness(mill, start="2026-03-01T00:00Z") as other:
        other.not_enqueued(render, order=1)
    Manifest("jobs.json").check(mill)
