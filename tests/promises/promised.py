"""The application of these tests: its handlers write to a journal outside the database.

`python -m tidemill worker tests.promises.promised:mill` runs it. What the environment names:

* `PROMISE_JOURNAL`: the file that bodies append a line to, whatever becomes of their outcome.
* `PROMISE_GATE`: handlers of this process that may be held read it, and so wait for its writer.
* `PROMISE_ENDING`: `discard` has judged handlers of this process discard their job.
* `PROMISE_CALM`: a file; while it is not there, the steady handlers keep running.
* `PROMISE_HASTY`: waits two seconds for PostgreSQL to answer, and not fifteen.
* `PROMISE_HINTS`: how many times this process hears each wake-up hint.
* `PROMISE_LOSSY`: loses answers after their commits: of the first `claim`, or of `reports`.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemill import Discard, JobContext, Retry, Tidemill
from tidemill.adapters import postgres_site
from tidemill.adapters.postgres import PostgresStore
from tidemill.config import open_store
from tidemill.errors import AnswerLost
from tidemill.store.contract import Store
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.outcomes import Verdict

# A fleet at rest looks for lapses every five seconds; these tests have leases of one.
postgres_site.CALM_SECONDS = 0.5

AT_ONCE = Retry.fixed(timedelta(0), jitter=0, interruption_limit=1000)
"""Leases of one second lapse of themselves on a busy machine, and no job may die of it."""
STEADY = 5

mill = Tidemill()


def journal(*words: object) -> None:
    """Append one line, whole, and see it written."""
    line = " ".join(map(str, (*words, os.getpid())))
    to = os.open(os.environ["PROMISE_JOURNAL"], os.O_APPEND | os.O_WRONLY | os.O_CREAT)
    try:
        os.write(to, f"{line}\n".encode())
        os.fsync(to)
    finally:
        os.close(to)


def stand_still() -> None:
    """Stop this process, as SIGSTOP from outside does, and not one instruction later."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def held() -> None:
    """Wait for the gate to be opened, where there is one: for a byte, or for its writer to go."""
    if gate := os.environ.get("PROMISE_GATE"):
        with Path(gate).open("rb", buffering=0) as door:
            door.read(1)


@mill.job("held", retry=AT_ONCE)
def held_job(ctx: JobContext, key: str) -> int:
    journal("start", key)
    held()
    ctx.add_tag("by", str(os.getpid()))
    journal("end", key)
    return os.getpid()


@mill.job("work", retry=AT_ONCE)
def work(ctx: JobContext, seconds: float) -> int:
    """Take a while; the output and the tag name the attempt that they are of."""
    return worked(ctx, lambda: ctx.sync.wait_cancelled(seconds))


def worked(ctx: JobContext, do: Callable[[], object]) -> int:
    """Run a body as the books want it: its begin, its finish, its output and its tag."""
    journal("begin", ctx.job_id, ctx.attempt)
    do()
    ctx.add_tag("attempt", str(ctx.attempt))
    journal("finish", ctx.job_id, ctx.attempt)
    return ctx.attempt


@mill.job("child", retry=AT_ONCE)
def child(ctx: JobContext, parent: str, attempt: int) -> int:
    """A job that an attempt of another one left."""
    return worked(ctx, lambda: journal("child-of", parent, attempt))


@mill.job("parent", retry=AT_ONCE)
def parent(ctx: JobContext, seconds: float) -> int:
    """Say how it goes, and leave one child."""

    def leave() -> None:
        ctx.log("begun", attempt=ctx.attempt)
        ctx.enqueue(child.bind(str(ctx.job_id), ctx.attempt))
        ctx.progress(0.5, f"attempt {ctx.attempt}")
        ctx.sync.wait_cancelled(seconds)
        ctx.log("ended", attempt=ctx.attempt)
        ctx.progress(1, f"attempt {ctx.attempt}")

    return worked(ctx, leave)


@mill.job("linger", retry=AT_ONCE)
def linger(ctx: JobContext) -> int:
    """Go on until there is calm."""

    def wait_for_calm() -> None:
        while not Path(os.environ["PROMISE_CALM"]).exists():
            ctx.sync.wait_cancelled(0.01)
            ctx.raise_if_cancelled()

    return worked(ctx, wait_for_calm)


@mill.job("judged", retry=AT_ONCE)
def judged(ctx: JobContext) -> int:
    """End as this process is told to: by a success, or by a discard."""

    def judge() -> None:
        held()
        if os.environ.get("PROMISE_ENDING") == "discard":
            journal("discarded", ctx.job_id, ctx.attempt)
            message = "told to"
            raise Discard(message)

    return worked(ctx, judge)


@mill.job("deaf", retry=AT_ONCE)
async def deaf(ctx: JobContext, seconds: float) -> int:
    """Keep the whole event loop from turning, for a while."""
    return worked(ctx, lambda: ctx.sync.wait_cancelled(seconds))


@mill.job("quick", retry=AT_ONCE)
async def quick(key: str) -> int:
    journal("start", key)
    await asyncio.sleep(0)
    journal("end", key)
    return os.getpid()


@mill.job("steady", retry=AT_ONCE)
def steady(ctx: JobContext, key: str) -> None:
    journal("start", key)
    while not Path(os.environ["PROMISE_CALM"]).exists():
        ctx.sync.wait_cancelled(0.01)
        ctx.raise_if_cancelled()


@mill.job("crash", retry=Retry.fixed(timedelta(0), jitter=0, interruption_limit=1))
def crash(ctx: JobContext) -> None:
    """End the process once the steady ones run beside it."""
    journal("start", "crash")
    mine = f" {os.getpid()}\n"
    while sum(mine in line for line in lines()) <= STEADY:
        ctx.sync.wait_cancelled(0.01)
    os._exit(1)


@mill.job("deadly", retry=Retry.fixed(timedelta(0), jitter=0, interruption_limit=1))
def deadly(ctx: JobContext, how: str) -> int:
    """End the process, one way or another."""
    journal("begin", ctx.job_id, ctx.attempt)
    match how:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            ctypes.string_at(0)
    return ctx.attempt


@mill.job("long")
async def long(ctx: JobContext) -> None:
    journal("start", "long")
    try:
        await asyncio.Event().wait()
    finally:
        journal("told", ctx.cancel_reason)


@mill.job("stubborn")
async def stubborn() -> None:
    journal("start", "stubborn")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            journal("ignored")


@mill.job("fork", retry=AT_ONCE)
def fork(key: str) -> int:
    """Have a forked child close the application it inherited, and answer its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            journal("child", key)
            mill.close()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    quick.sync.enqueue(key)
    return os.waitstatus_to_exitcode(status)


def lines() -> list[str]:
    return Path(os.environ["PROMISE_JOURNAL"]).read_text().splitlines(keepends=True)


class LosesOneAnswer:
    """A store that commits the first claim that finds something, and loses its answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lost = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def perform(self, operation):
        answer = await self._store.perform(operation)
        if isinstance(operation, Exchange):
            if answer.claimed and not self._lost:
                self._lost = True
                journal("lost")
                message = "cut after the commit"
                raise AnswerLost(message)
            if any(outcome.verdict is Verdict.RELEASED for outcome in operation.outcomes):
                journal("released")
        return answer

    @contextmanager
    def dedicated(self):
        with self._store.dedicated() as channel:
            yield _Beating(channel)


class _Beating:
    def __init__(self, channel) -> None:
        self._channel = channel

    def perform(self, operation):
        answer = self._channel.perform(operation)
        if isinstance(operation, Beat):
            journal("beat")
        return answer


class LosesReports:
    """A store that commits every report, and loses the answer to every third one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reports = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def perform(self, operation):
        answer = await self._store.perform(operation)
        if isinstance(operation, Exchange) and operation.outcomes:
            self._reports += 1
            if self._reports % 3 == 1:
                journal("lost", "report")
                message = "cut after the commit"
                raise AnswerLost(message)
        return answer


def given_store() -> Store:
    """The store that the environment names."""
    return open_store(os.environ["TIDEMILL_STORE"], DEFAULT_BOUNDS, lambda: datetime.now(UTC))


class Unheard:
    """A store whose hints are all lost, or each heard many times."""

    def __init__(self, store: Store, times: int) -> None:
        self._store, self._times = store, times

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        def echo() -> None:
            for _ in range(self._times):
                wake()

        return self._store.watch(echo)


if "PROMISE_HINTS" in os.environ:
    mill.configure(Unheard(given_store(), int(os.environ["PROMISE_HINTS"])))
match os.environ.get("PROMISE_LOSSY"):
    case "claim":
        mill.configure(LosesOneAnswer(given_store()))
    case "reports":
        mill.configure(LosesReports(given_store()))
if "PROMISE_HASTY" in os.environ:
    postgres_site.SILENCE_SECONDS = 1.0
    mill.configure(
        PostgresStore(os.environ["TIDEMILL_STORE"], statement_timeout=timedelta(seconds=1))
    )
