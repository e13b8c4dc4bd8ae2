"""The application of these tests: its handlers write to a journal outside the database.

`python -m tidemill worker promised:mill` runs it. What the environment names:

* `PROMISE_JOURNAL`: the file that bodies append a line to, whatever becomes of their outcome.
* `PROMISE_GATE`: handlers of this process that may be held read it, and so wait for its writer.
* `PROMISE_CALM`: a file; while it is not there, the steady handlers keep running.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from tidemill import JobContext, Retry, Tidemill
from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import AnswerLost
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat
from tidemill.values.outcomes import Verdict

AT_ONCE = Retry.fixed(timedelta(0), jitter=0)
STEADY = 5

mill = Tidemill()


def journal(*words: object) -> None:
    """Append one line, whole."""
    line = " ".join(map(str, (*words, os.getpid())))
    to = os.open(os.environ["PROMISE_JOURNAL"], os.O_APPEND | os.O_WRONLY | os.O_CREAT)
    try:
        os.write(to, f"{line}\n".encode())
    finally:
        os.close(to)


def held() -> None:
    """Wait for the gate to be opened, where there is one."""
    if gate := os.environ.get("PROMISE_GATE"):
        Path(gate).read_bytes()


@mill.job("held", retry=AT_ONCE)
def held_job(ctx: JobContext, key: str) -> int:
    journal("start", key)
    held()
    ctx.add_tag("by", str(os.getpid()))
    journal("end", key)
    return os.getpid()


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

    def __init__(self, store: SqliteStore) -> None:
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


def lossy() -> Tidemill:
    """The same application, on the store that loses an answer."""
    mill.configure(LosesOneAnswer(SqliteStore.from_url(os.environ["TIDEMILL_STORE"])))
    return mill


if "PROMISE_LOSSY" in os.environ:
    lossy()
