"""The scope of an attempt: opened before the handler, closed when that has really ended."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from tests.shell.conftest import Defined

from tidemill.context import JobContext
from tidemill.errors import DeclarationError
from tidemill.shell.execution import Executor
from tidemill.shell.scope import Scopes, prepare_jobs
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
from tidemill.values.tags import Tag
from tidemill.values.wishes import Discard, Snooze

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Gateway:
    """A service."""


@dataclass
class Needs:
    """What a handler of these tests takes."""

    services: dict = field(default_factory=lambda: {"gateway": Gateway})
    job_class: type | None = None


class Seen:
    """A kind of scope, and what happened to the scopes that were opened."""

    def __init__(self, kind):
        self.kind = kind
        self.events = []
        self.threads = set()
        self.fail_opening = self.fail_getting = self.fail_closing = None
        self.before_get = self.before_close = None

    def note(self, *event):
        self.events.append(event)
        self.threads.add(threading.get_ident())

    @property
    def scopes(self):
        return Scopes(self.open_async if self.kind == "async" else self.open_sync)

    def opened(self, context):
        self.note("opened", context.wire_name)
        if self.fail_opening:
            raise self.fail_opening

    def give(self, wanted):
        self.note("gave", wanted.__name__)
        if self.fail_getting:
            raise self.fail_getting
        return wanted()

    def closed(self, error):
        self.note("closed", error)
        if self.fail_closing:
            raise self.fail_closing

    @asynccontextmanager
    async def open_async(self, context):
        async def get(wanted):
            if self.before_get:
                await self.before_get()
            return self.give(wanted)

        self.opened(context)
        try:
            yield SimpleNamespace(get=get)
        except BaseException as error:
            self.closed(error)
            raise
        if self.before_close:
            await self.before_close()
        self.closed(None)

    @contextmanager
    def open_sync(self, context):
        self.opened(context)
        try:
            yield SimpleNamespace(get=self.give)
        except BaseException as error:
            self.closed(error)
            raise
        self.closed(None)

    @property
    def words(self):
        return [event[0] for event in self.events]

    @property
    def error(self):
        return self.events[-1][1]


@pytest.fixture(params=["async", "sync"])
def seen(request):
    return Seen(request.param)


@pytest.fixture
def seen_async():
    return Seen("async")


class Bench:
    """Runs single attempts of handlers that take a gateway."""

    def __init__(self, jobs, claimed, seen):
        self.jobs, self.claimed = jobs, claimed
        self.threads = DaemonThreads(4, "tidemill-bench")
        self.executor = Executor(jobs, JobContext, lambda: NOW, self.threads, seen.scopes)

    def declare(self, function, needs=None):
        context = "ctx" in inspect.signature(function).parameters
        needs = needs or Needs()
        self.jobs.defined[function.__name__] = Defined(function, context, injection=needs)

    def start(self, wire_name="job", payload=b"{}"):
        ended = asyncio.get_running_loop().create_future()
        execution = self.executor.start(self.claimed(wire_name, payload), ended.set_result)
        return execution, ended

    async def run(self, wire_name="job", payload=b"{}"):
        async with asyncio.timeout(30):
            return await self.start(wire_name, payload)[1]


@pytest.fixture
async def bench(jobs, claimed, request):
    name = "seen" if "seen" in request.fixturenames else "seen_async"
    made = Bench(jobs, claimed, request.getfixturevalue(name))
    yield made
    made.threads.close()


@pytest.fixture(params=["coroutine", "plain"])
def handler(request, bench):
    """Declares a handler from its body, as a coroutine function and as a plain one."""

    def declare(body):
        if request.param == "plain":

            def job(gateway, **arguments):
                return body(gateway, **arguments)
        else:

            async def job(gateway, **arguments):
                await asyncio.sleep(0)
                return body(gateway, **arguments)

        bench.declare(job)

    return declare


async def test_a_handler_is_given_its_services_between_opening_and_closing(bench, handler, seen):
    handler(lambda gateway, word: [seen.note("ran") or type(gateway).__name__, word])
    assert await bench.run(payload=b'{"word": "on"}') == Returned(b'["Gateway", "on"]')
    assert seen.events == [("opened", "job"), ("gave", "Gateway"), ("ran",), ("closed", None)]


async def test_each_attempt_has_a_scope_of_its_own(bench, handler, seen):
    given = []
    handler(given.append)
    for _ in range(3):
        await bench.run()
    assert len(set(map(id, given))) == 3
    assert seen.words == ["opened", "gave", "closed"] * 3


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (LookupError("gone"), Raised),
        (SystemExit(3), Raised),
        (Snooze(timedelta(1)), Snoozed),
        (Discard("useless"), Discarded),
    ],
)
async def test_the_scope_is_closed_with_what_the_handler_raised(
    bench, handler, seen, error, ending
):
    def body(gateway):
        raise error

    handler(body)
    assert isinstance(await bench.run(), ending)
    assert seen.words == ["opened", "gave", "closed"]
    assert seen.error is error


async def test_an_output_that_cannot_be_encoded_closes_the_scope_with_that_error(
    bench, handler, seen
):
    handler(lambda gateway: {1, 2})
    ending = await bench.run()
    assert ending.error.kind == "tidemill.errors.EncodingError"
    assert type(seen.error).__name__ == "EncodingError"


async def test_a_payload_that_does_not_decode_opens_no_scope(bench, handler, seen):
    handler(lambda gateway: None)
    assert isinstance(await bench.run(payload=b"{"), Unroutable)
    assert seen.events == []


async def test_a_scope_that_does_not_open_fails_the_attempt(bench, handler, seen):
    seen.fail_opening = ConnectionError("no database")
    handler(lambda gateway: None)
    ending = await bench.run()
    assert (ending.error.kind, ending.error.message) == ("ConnectionError", "no database")
    assert seen.words == ["opened"]


async def test_a_service_that_cannot_be_made_fails_the_attempt_and_closes_the_scope(
    bench, handler, seen
):
    seen.fail_getting = ConnectionError("no gateway")
    handler(lambda gateway: seen.note("ran"))
    ending = await bench.run()
    assert (ending.error.kind, ending.error.message) == ("ConnectionError", "no gateway")
    assert seen.words == ["opened", "gave", "closed"]
    assert seen.error is seen.fail_getting


async def test_a_scope_that_does_not_close_after_a_success_fails_the_attempt(bench, handler, seen):
    seen.fail_closing = ConnectionError("commit failed")
    handler(lambda gateway: "done")
    ending = await bench.run()
    assert isinstance(ending, Raised)
    assert (ending.error.kind, ending.error.message) == ("ConnectionError", "commit failed")


async def test_the_handlers_own_error_says_more_than_that_of_closing(bench, handler, seen, caplog):
    def body(gateway):
        raise LookupError("no such order")

    seen.fail_closing = ConnectionError("rollback failed")
    handler(body)
    with caplog.at_level(logging.ERROR, "tidemill.worker"):
        ending = await bench.run()
    assert ending.error.kind == "LookupError"
    (record,) = caplog.records
    assert "did not close in order" in record.getMessage()
    assert record.exc_info[1] is seen.fail_closing


async def test_the_tags_that_a_handler_adds_ride_on_its_success(bench, seen):
    async def job(ctx, gateway):
        ctx.add_tag("size", "xl")

    bench.declare(job)
    ending = await bench.run()
    assert ending == Returned(None, frozenset({Tag("size", "xl")}))


async def test_a_method_is_called_on_the_object_that_the_scope_gives(bench, seen):
    class Payments:
        def job(self, ctx, amount, gateway):
            return [type(self).__name__, ctx.wire_name, amount, type(gateway).__name__]

    bench.declare(Payments.job, Needs(job_class=Payments))
    ending = await bench.run(payload=b'{"amount": 3}')
    assert ending == Returned(b'["Payments", "job", 3, "Gateway"]')
    assert [event[1] for event in seen.events if event[0] == "gave"] == ["Payments", "Gateway"]


async def test_a_scope_for_threads_lives_on_the_thread_of_a_plain_handler(bench, jobs, seen):
    ran = []

    def job(gateway):
        ran.append(threading.get_ident())

    bench.declare(job)
    await bench.run()
    here = threading.get_ident()
    assert ran != [here]
    assert seen.threads == ({here} if seen.kind == "async" else set(ran))


async def test_the_scope_of_a_thread_is_closed_only_when_its_function_has_returned(
    bench, seen_async
):
    started, go_on = threading.Event(), threading.Event()

    def job(ctx, gateway):
        started.set()
        go_on.wait(60)
        ctx.raise_if_cancelled()

    bench.declare(job)
    execution, ended = bench.start()
    assert await asyncio.to_thread(started.wait, 60)
    execution.cancel(CancelReason.OPERATOR)
    assert execution.interrupt is None
    assert seen_async.words == ["opened", "gave"]
    go_on.set()
    assert await ended == Stopped()
    assert type(seen_async.error).__name__ == "JobCancelled"


async def test_a_coroutine_that_is_cancelled_closes_its_scope_with_the_cancellation(
    bench, seen_async
):
    started = asyncio.Event()

    async def job(gateway):
        started.set()
        await asyncio.Event().wait()

    bench.declare(job)
    execution, ended = bench.start()
    await started.wait()
    execution.cancel(CancelReason.TIMEOUT)
    assert await ended == Stopped()
    assert isinstance(seen_async.error, asyncio.CancelledError)


@pytest.mark.parametrize("plain", [True, False])
async def test_a_service_that_takes_for_ever_can_be_cancelled(bench, seen_async, plain):
    waiting = asyncio.Event()

    async def never():
        waiting.set()
        await asyncio.Event().wait()

    seen_async.before_get = never

    def sync_job(gateway): ...

    async def async_job(gateway): ...

    bench.declare(sync_job if plain else async_job)
    execution, ended = bench.start("sync_job" if plain else "async_job")
    await waiting.wait()
    execution.cancel(CancelReason.SHUTDOWN)
    assert await ended == Stopped()
    assert seen_async.words == ["opened", "closed"]
    assert isinstance(seen_async.error, asyncio.CancelledError)


async def test_closing_that_takes_for_ever_can_be_cancelled(bench, seen_async):
    waiting = asyncio.Event()

    async def never():
        waiting.set()
        await asyncio.Event().wait()

    seen_async.before_close = never

    async def job(gateway):
        return "done"

    bench.declare(job)
    execution, ended = bench.start()
    await waiting.wait()
    execution.cancel(CancelReason.TIMEOUT)
    assert await ended == Stopped()


async def test_a_loop_that_ends_under_a_running_thread_leaves_it_its_scope(bench, seen_async, jobs):
    started, go_on = threading.Event(), threading.Event()

    def job(gateway):
        started.set()
        go_on.wait(60)

    bench.declare(job)
    _, ended = bench.start()
    assert await asyncio.to_thread(started.wait, 60)
    (running,) = bench.executor._tasks
    running.cancel()
    assert await ended == Stopped()
    assert seen_async.words == ["opened", "gave"]
    go_on.set()


async def test_a_kept_traceback_starts_with_the_handler(bench, handler, seen):
    def body(gateway):
        message = "no such card"
        raise ValueError(message)

    handler(body)
    ending = await bench.run()
    assert "in body" in ending.error.detail
    assert "tidemill/shell" not in ending.error.detail


async def test_handlers_that_take_nothing_open_no_scope(bench, jobs, seen):
    @jobs
    async def coroutine(): ...

    @jobs
    def plain(ctx): ...

    await bench.run("coroutine")
    await bench.run("plain")
    assert seen.events == []


async def test_a_job_that_needs_a_scope_where_there_is_none_fails_with_the_way_out(jobs, claimed):
    bench = Bench(jobs, claimed, SimpleNamespace(scopes=None))

    async def job(gateway): ...

    bench.declare(job)
    ending = await bench.run()
    assert "setup_dishka(container, mill)" in ending.error.message


def needing(jobs, needs):
    def job(): ...

    jobs.defined["orders.ship"] = Defined(job, injection=needs)
    return jobs


def test_a_worker_refuses_a_service_without_scopes(jobs):
    with pytest.raises(DeclarationError) as refused:
        prepare_jobs(needing(jobs, Needs()), None)
    assert "Job 'orders.ship' cannot run: its parameter 'gateway' wants" in str(refused.value)
    assert f"{__name__}.Gateway, and the app has nowhere to take it from." in str(refused.value)
    assert 'pip install "tidemill[di]"' in str(refused.value)


def test_a_worker_refuses_what_the_scopes_will_not_give(jobs):
    asked = []

    def why_not(wanted, own):
        asked.append((wanted, own))
        return "which is sold out." if wanted is Gateway else None

    scopes = Scopes(Seen("async").open_async, why_not)
    with pytest.raises(DeclarationError, match=r"'gateway' wants .*Gateway, which is sold out\."):
        prepare_jobs(needing(jobs, Needs(job_class=Bench)), scopes)
    assert asked == [(Bench, True), (Gateway, False)]
