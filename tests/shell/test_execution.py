"""Whatever a handler does, exactly one ending comes out of it, when it has really ended."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.context import JobContext
from tidemill.core.endings import outcome_of
from tidemill.errors import JobCancelled
from tidemill.shell.execution import Executor
from tidemill.shell.threads import DaemonThreads
from tidemill.values.endings import (
    CancelReason,
    Discarded,
    Raised,
    Returned,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.outcomes import Verdict
from tidemill.values.tags import Tag
from tidemill.values.wishes import Discard, RetryAfter, Snooze
from tidemill.values.workers import Pair

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REASONS = list(CancelReason)


class Bench:
    """Runs single attempts."""

    def __init__(self, jobs, claimed, threads):
        self.executor = Executor(jobs, JobContext, lambda: NOW, threads)
        self.claimed = claimed

    def start(self, wire_name, payload=b"{}"):
        ended = asyncio.get_running_loop().create_future()
        execution = self.executor.start(self.claimed(wire_name, payload), ended.set_result)
        return execution, ended

    async def run(self, wire_name, payload=b"{}"):
        async with asyncio.timeout(30):
            return await self.start(wire_name, payload)[1]


@pytest.fixture
async def bench(jobs, claimed):
    threads = DaemonThreads(4, "tidemill-bench")
    yield Bench(jobs, claimed, threads)
    threads.close()


@pytest.fixture(params=["coroutine", "plain"])
def handler(request, jobs):
    """Declares a handler from its body, as a coroutine function and as a plain one."""

    def declare(body):
        if request.param == "plain":

            def job(**arguments):
                return body(**arguments)
        else:

            async def job(**arguments):
                await asyncio.sleep(0)
                return body(**arguments)

        jobs(job)
        return "job"

    return declare


async def test_what_a_handler_returns_is_encoded_as_its_output(bench, handler):
    job = handler(lambda word: {"said": word})
    assert await bench.run(job, b'{"word": "on"}') == Returned(b'{"said": "on"}')


async def test_a_handler_that_returns_nothing_has_no_output(bench, handler):
    assert await bench.run(handler(lambda: None)) == Returned(None)


async def test_an_output_that_cannot_be_encoded_fails_the_attempt_with_the_reason(bench, handler):
    ending = await bench.run(handler(lambda: {1, 2}))
    assert isinstance(ending, Raised)
    assert ending.error.kind == "tidemill.errors.EncodingError"
    assert "set" in ending.error.message


async def test_a_handler_that_raises_leaves_its_error_and_traceback(bench, handler):
    def body():
        message = "no such order"
        raise LookupError(message)

    ending = await bench.run(handler(body))
    assert isinstance(ending, Raised)
    assert (ending.error.kind, ending.error.message) == ("LookupError", "no such order")
    assert ending.error.ancestry == ("LookupError", "Exception", "BaseException")
    assert "in body" in ending.error.detail


class Own(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Own("x")])
async def test_a_handler_that_raises_to_end_the_process_only_fails(bench, handler, error):
    def body():
        raise error

    ending = await bench.run(handler(body))
    assert isinstance(ending, Raised)
    assert ending.error.kind.rpartition(".")[2] == type(error).__name__


class Mute(Exception):
    def __init__(self, failure):
        self.failure = failure

    def __str__(self):
        raise self.failure


@pytest.mark.parametrize("failure", [ValueError("mute"), SystemExit(), Own()])
async def test_an_error_that_cannot_say_what_it_is_still_fails_the_attempt(bench, handler, failure):
    def body():
        raise Mute(failure)

    ending = await bench.run(handler(body))
    assert isinstance(ending, Raised)
    assert ending.error.kind.endswith("Mute")
    assert type(failure).__name__ in ending.error.message


class Forgetful(RetryAfter):
    def __init__(self):
        """Leave the delay out."""


async def test_a_wish_without_its_delay_fails_the_attempt(bench, handler):
    def body():
        raise Forgetful

    ending = await bench.run(handler(body))
    assert isinstance(ending, Raised)
    assert "delay" in ending.error.message


async def test_what_a_handler_wishes_is_its_ending(bench, jobs):
    @jobs
    async def later():
        raise RetryAfter(timedelta(minutes=3), "rate limited")

    @jobs
    def useless():
        raise Discard("gone")

    @jobs
    async def not_yet():
        raise Snooze(timedelta(minutes=1))

    @jobs
    def obedient():
        raise JobCancelled

    failed = await bench.run("later")
    assert isinstance(failed, Raised)
    assert (failed.delay, failed.error.message) == (timedelta(minutes=3), "rate limited")
    discarded = await bench.run("useless")
    assert isinstance(discarded, Discarded)
    assert discarded.error.message == "gone"
    assert await bench.run("not_yet") == Snoozed(timedelta(minutes=1))
    assert await bench.run("obedient") == Stopped()


async def test_a_job_of_an_unknown_name_is_unroutable(bench):
    ending = await bench.run("nobody")
    assert isinstance(ending, Unroutable)
    assert ending.cause == "no-handler"
    assert "'nobody'" in ending.error.message


async def test_a_payload_that_does_not_decode_is_unroutable(bench, handler):
    ending = await bench.run(handler(lambda: None), b"{")
    assert isinstance(ending, Unroutable)
    assert ending.cause == "payload"
    assert ending.error.kind == "tidemill.errors.DecodingError"


async def test_a_decoding_error_of_the_handlers_own_is_its_failure(bench, jobs):
    @jobs
    async def parse():
        jobs.get("parse").decode(b"{")

    assert isinstance(await bench.run("parse"), Raised)


async def test_the_context_comes_first_and_its_tags_ride_on_the_success(bench, jobs):
    @jobs
    async def tagged(ctx, size):
        ctx.add_tag("size", size)
        return [ctx.wire_name, ctx.attempt, ctx.now().isoformat()]

    ending = await bench.run("tagged", b'{"size": "xl"}')
    assert ending.tags == frozenset({Tag("size", "xl")})
    assert ending.output == b'["tagged", 1, "2026-03-01T00:00:00+00:00"]'


async def test_no_handler_sees_the_context_variables_of_another(bench, handler):
    variable = contextvars.ContextVar("variable", default="unset")

    def body():
        before = variable.get()
        variable.set("mine")
        return before

    job = handler(body)
    variable.set("the starter's")
    for _ in range(3):
        assert await bench.run(job) == Returned(b'"the starter\'s"')
    assert variable.get() == "the starter's"


async def test_a_plain_handler_runs_beside_the_loop_and_a_coroutine_on_it(bench, jobs):
    @jobs
    def plain():
        return threading.get_ident()

    @jobs
    async def coroutine():
        return threading.get_ident()

    here = threading.get_ident()
    assert int((await bench.run("plain")).output) != here
    assert int((await bench.run("coroutine")).output) == here


async def test_a_coroutine_cancelled_before_its_first_step_has_stopped(bench, jobs):
    ran = []

    @jobs
    async def job():
        ran.append(True)

    execution, ended = bench.start("job")
    execution.cancel(CancelReason.OPERATOR)
    assert await ended == Stopped()
    assert not ran


@pytest.mark.parametrize("reason", REASONS)
async def test_a_coroutine_is_interrupted_and_told_why(bench, jobs, reason):
    started, seen = asyncio.Event(), []

    @jobs
    async def job(ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append((ctx.cancelled, ctx.cancel_reason))

    execution, ended = bench.start("job")
    await started.wait()
    execution.cancel(reason)
    assert await ended == Stopped()
    assert seen == [(True, reason)]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_thread_is_woken_and_told_why(bench, jobs, reason):
    @jobs
    def job(ctx):
        told = ctx.sync.wait_cancelled(timeout=30)
        ctx.raise_if_cancelled()
        return told

    execution, ended = bench.start("job")
    execution.cancel(reason)
    assert await ended == Stopped()


async def test_a_handler_learns_the_first_reason_only(bench, jobs):
    started, seen = asyncio.Event(), []

    @jobs
    async def job(ctx):
        started.set()
        for _ in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append(ctx.cancel_reason)

    execution, ended = bench.start("job")
    await started.wait()
    for reason in (CancelReason.OPERATOR, CancelReason.LEASE_LOST):
        execution.cancel(reason)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert await ended == Returned(None)
    assert seen == [CancelReason.OPERATOR, CancelReason.OPERATOR]


async def test_a_handler_that_finishes_in_spite_of_its_cancellation_has_succeeded(bench, jobs):
    started = asyncio.Event()

    @jobs
    async def job():
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"

    execution, ended = bench.start("job")
    await started.wait()
    execution.cancel(CancelReason.OPERATOR)
    ending = await ended
    assert ending == Returned(b'"done"')
    outcome = outcome_of(Pair("job", 1), ending, CancelReason.OPERATOR)
    assert outcome.verdict is Verdict.SUCCEEDED


async def test_a_child_waits_for_the_cancellation_of_its_handler(bench, jobs):
    started = asyncio.Event()

    @jobs
    async def job(ctx):
        child = asyncio.create_task(ctx.wait_cancelled())
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await child

    execution, ended = bench.start("job")
    await started.wait()
    execution.cancel(CancelReason.SHUTDOWN)
    assert await ended == Returned(b'"shutdown"')


async def test_a_thread_that_the_system_refuses_fails_the_attempt(jobs, claimed):
    class Refusing(DaemonThreads):
        def submit(self, call):
            message = "can't start new thread"
            raise RuntimeError(message)

    bench = Bench(jobs, claimed, Refusing(1, "tidemill-none"))
    jobs(lambda_named("job"))
    ending = await bench.run("job")
    assert isinstance(ending, Raised)
    assert ending.error.message == "can't start new thread"


def lambda_named(name):
    def job():
        """Do nothing."""

    job.__name__ = name
    return job


async def test_a_kept_traceback_starts_with_the_handler(bench, handler):
    def body():
        message = "no such card"
        raise ValueError(message)

    ending = await bench.run(handler(body))
    assert "no such card" in ending.error.detail
    assert "in body" in ending.error.detail
    assert "tidemill/shell" not in ending.error.detail


async def test_a_traceback_without_the_handler_is_kept_whole(bench, jobs):
    @jobs
    async def picky(card):
        return card

    ending = await bench.run("picky")
    assert "missing 1 required" in ending.error.message
    assert "tidemill/shell" in ending.error.detail


@pytest.mark.parametrize("wish", [RetryAfter, Snooze])
async def test_a_wish_with_a_wait_that_is_none_is_a_failure(bench, handler, wish):
    class Careless(wish):
        def __init__(self):
            self.delay = 5

    def body():
        raise Careless

    ending = await bench.run(handler(body))
    assert isinstance(ending, Raised)
    assert ending.delay is None
    assert "which is no timedelta" in ending.error.message
