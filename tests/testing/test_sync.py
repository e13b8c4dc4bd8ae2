"""Tests without an event loop: `.sync` before the verb."""

import asyncio
from contextvars import ContextVar
from datetime import timedelta

import pytest

from tidemill import JobContext, Retry, Tidemill
from tidemill.errors import WrongContext
from tidemill.testing import Harness, JobFailed


def test_a_whole_test_without_a_loop(mill: Tidemill, h: Harness) -> None:
    @mill.job("remind", retry=Retry.fixed(timedelta(hours=1)))
    async def remind(context: JobContext, customer: str) -> str:
        if context.attempt == 1:
            raise OSError("not yet")
        return f"{customer} {context.now():%H:%M}"

    ref = remind.with_options(delay="1d").sync.enqueue("c-1")
    assert h.sync.run_until_idle() == 0
    h.sync.advance(days=1)
    assert h.sync.run_for("2h") == 2
    assert ref.sync.result() == "c-1 01:00"
    assert h.sync.job(ref).state == "succeeded"
    assert [job.id for job in h.sync.jobs(state="succeeded", handle=remind)] == [ref.id]
    assert h.sync.cancel(ref).effect == "unchanged"
    with pytest.raises(OSError, match="not yet"):
        h.sync.perform(remind, customer="c-2")


def test_a_failure_is_raised_as_in_async_tests(mill: Tidemill, h: Harness) -> None:
    @mill.job("bad", retry=Retry.never())
    def bad() -> None:
        raise KeyError("gone")

    bad.sync.enqueue()
    with pytest.raises(JobFailed) as failed:
        h.sync.run_until_idle()
    assert isinstance(failed.value.__cause__, KeyError)
    bad.sync.enqueue()
    assert h.sync.run_until_idle(raise_errors=False) == 1
    with pytest.raises(KeyError, match="gone"):
        h.sync.perform(bad)


async def test_it_refuses_to_block_a_running_loop(mill: Tidemill, h: Harness) -> None:
    verbs = {
        "run_until_idle": h.sync.run_until_idle,
        "run_for": h.sync.run_for,
        "advance": h.sync.advance,
        "jobs": h.sync.jobs,
    }
    for name, verb in verbs.items():
        with pytest.raises(WrongContext, match=rf"write `await harness\.{name}\(\.\.\.\)`"):
            verb()


def test_one_loop_serves_the_whole_test_and_is_closed_with_it(mill: Tidemill) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @mill.job("loop")
    async def loop() -> None:
        loops.append(asyncio.get_running_loop())

    with Harness(mill) as h:
        for _ in range(2):
            loop.sync.enqueue()
            h.sync.run_until_idle()
        assert loops[0] is loops[1]
        assert not loops[0].is_closed()
    assert loops[0].is_closed()


def test_handlers_see_the_context_variables_of_the_test(mill: Tidemill, h: Harness) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")

    @mill.job("who")
    async def who() -> str:
        return user.get()

    for name in ("ann", "bob"):
        user.set(name)
        assert h.sync.perform(who) == name
