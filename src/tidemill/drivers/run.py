"""Run a program on a connection: `run` blocks, `run_async` awaits, and both take the same course.

`Executor` is what a connection has to offer; a test may wrap one to fail between any two steps.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from tidemill.errors import AnswerLost, Refused, StoreUnavailable
from tidemill.sql.program import (
    COMMIT,
    Batch,
    Commit,
    FollowUp,
    Program,
    Row,
    Statement,
    Step,
    each,
)

_log = logging.getLogger("tidemill.store")

T = TypeVar("T")


class Executor(Protocol):
    """One connection, and at most one open transaction on it."""

    @property
    def in_transaction(self) -> bool:
        """Whether `begin` was called and neither `commit` nor `rollback` since."""
        ...

    def begin(self, *, write: bool) -> None:
        """Open a transaction; `write` takes the write lock at once, where there is one."""
        ...

    def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        """Run one statement, or one batch of it, and answer its rows."""
        ...

    def commit(self) -> None:
        """Commit.

        Raises:
            AnswerLost: nobody knows whether it was done.
        """
        ...

    def rollback(self) -> None:
        """Undo what was written since `begin`; never fails."""
        ...


class AsyncExecutor(Protocol):
    """The same connection, awaited."""

    async def begin(self, *, write: bool) -> None:
        """Open a transaction."""
        ...

    async def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        """Run one statement, or one batch of it, and answer its rows."""
        ...

    async def commit(self) -> None:
        """Commit, or raise AnswerLost if nobody knows whether it was done."""
        ...

    async def rollback(self) -> None:
        """Undo what was written since `begin`; never fails."""
        ...


class Patience(Protocol):
    """Calls `do`, again if the database was busy, and answers what it answers."""

    def __call__(self, do: Callable[[], T], /) -> T:
        """Call it."""
        ...


class AsyncPatience(Protocol):
    """The same, awaited."""

    async def __call__(self, do: Callable[[], Awaitable[T]], /) -> T:
        """Call it."""
        ...


def once(do: Callable[[], T], /) -> T:
    """No patience: call it once."""
    return do()


async def once_async(do: Callable[[], Awaitable[T]], /) -> T:
    """No patience: call it once."""
    return await do()


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a transaction."""

    write: bool


Deed = Begin | Statement | Batch | Commit | FollowUp
Deeds = Generator[Deed, Sequence[Row], T]
Closing = Callable[[T], Sequence[Statement]]
"""What else is to be said in the last transaction, once the answer is known; a program that ends
with a follow-up has said it too late for that, and leaves it to its caller."""

_TOLD = (StoreUnavailable, Refused)
"""What says that nothing was written: a program hears of it, and may have a part of it undone. It
may not be told of a program that has committed."""


def nothing_else(_answer: object) -> Sequence[Statement]:
    return ()


def run(
    program: Program[T],
    executor: Executor,
    *,
    write: bool,
    patiently: Patience = once,
    closing: Closing[T] = nothing_else,
) -> T:
    """Run a program to its end and commit; on any error roll back and let it pass.

    Each of its follow-ups is tried again on its own, as `patiently` says. Whoever tries the whole
    again does so for `StoreUnavailable` alone.

    Raises:
        StoreUnavailable: nothing was committed.
        AnswerLost: a fault came after a commit, in the program itself.
    """

    def follow(step: FollowUp) -> object:
        return patiently(lambda: run(step.make(), executor, write=write, patiently=patiently))

    return _drive(in_transactions(program, write=write, closing=closing), executor, follow)


def look(program: Program[T], executor: Executor) -> T:
    """Run a program outside any transaction: each of its statements is one of its own."""
    return _drive(program, executor, lambda step: look(step.make(), executor))


async def run_async(
    program: Program[T],
    executor: AsyncExecutor,
    *,
    write: bool,
    patiently: AsyncPatience = once_async,
    closing: Closing[T] = nothing_else,
) -> T:
    """The same as `run`, awaited."""

    async def follow(step: FollowUp) -> object:
        return await patiently(
            lambda: run_async(step.make(), executor, write=write, patiently=patiently)
        )

    deeds = in_transactions(program, write=write, closing=closing)
    return await _drive_async(deeds, executor, follow)


async def look_async(program: Program[T], executor: AsyncExecutor) -> T:
    """The same as `look`, awaited."""
    return await _drive_async(program, executor, lambda step: look_async(step.make(), executor))


def in_transactions(
    program: Program[T], *, write: bool, closing: Closing[T] = nothing_else
) -> Deeds[T]:
    """What a connection has to do for a program, in order.

    A transaction is opened by the first statement and by the first after each commit, so a program
    that refuses its request at sight touches nothing. Before a follow-up all is committed.
    """
    progress = _Progress()
    try:
        answer = yield from _steps(program, progress, write=write)
        if progress.opened:
            yield from each(closing(answer))
            yield COMMIT
    except _TOLD as error:
        if progress.committed:
            message = f"A part of this was committed before a fault: {error} Ask again."
            raise AnswerLost(message) from error
        raise
    return answer


@dataclass(slots=True)
class _Progress:
    """How far a program has come: whether a transaction is open, and whether one is behind it."""

    opened: bool = False
    committed: bool = False


def _steps(program: Program[T], progress: _Progress, *, write: bool) -> Deeds[T]:
    go_on: Callable[[], Step] = partial(next, program)
    while True:
        try:
            step = go_on()
        except StopIteration as stop:
            answer: T = stop.value
            return answer
        if isinstance(step, Commit | FollowUp):
            if progress.opened:
                yield COMMIT
                progress.opened, progress.committed = False, True
            go_on = partial(program.send, (yield step) if isinstance(step, FollowUp) else ())
            continue
        if not progress.opened:
            yield Begin(write)
            progress.opened = True
        try:
            rows = yield step
        except _TOLD as error:
            go_on = partial(program.throw, error)
        else:
            go_on = partial(program.send, rows)


def _drive(deeds: Deeds[T], executor: Executor, follow: Callable[[FollowUp], object]) -> T:
    go_on: Callable[[], Deed] = partial(next, deeds)
    try:
        while True:
            deed = go_on()
            try:
                rows = _do(deed, executor, follow)
            except _TOLD as error:
                go_on = partial(deeds.throw, error)
            else:
                go_on = partial(deeds.send, rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except BaseException:
        executor.rollback()
        raise


def _do(deed: Deed, executor: Executor, follow: Callable[[FollowUp], object]) -> Sequence[Row]:
    match deed:
        case Begin(write):
            executor.begin(write=write)
        case Commit():
            executor.commit()
        case FollowUp():
            try:
                return _followed(follow(deed))
            except Exception:  # noqa: BLE001 - whatever it is, what was committed stands
                return _given_up(deed)
        case _:
            return executor.step(deed)
    return ()


async def _drive_async(
    deeds: Deeds[T], executor: AsyncExecutor, follow: Callable[[FollowUp], Awaitable[object]]
) -> T:
    go_on: Callable[[], Deed] = partial(next, deeds)
    try:
        while True:
            deed = go_on()
            try:
                rows = await _do_async(deed, executor, follow)
            except _TOLD as error:
                go_on = partial(deeds.throw, error)
            else:
                go_on = partial(deeds.send, rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except BaseException:
        await executor.rollback()
        raise


async def _do_async(
    deed: Deed, executor: AsyncExecutor, follow: Callable[[FollowUp], Awaitable[object]]
) -> Sequence[Row]:
    match deed:
        case Begin(write):
            await executor.begin(write=write)
        case Commit():
            await executor.commit()
        case FollowUp():
            try:
                return _followed(await follow(deed))
            except Exception:  # noqa: BLE001 - whatever it is, what was committed stands
                return _given_up(deed)
        case _:
            return await executor.step(deed)
    return ()


def _followed(value: Any) -> Sequence[Row]:
    return ({"value": value},)


def _given_up(step: FollowUp) -> Sequence[Row]:
    """A follow-up failed for good: what came before it stands, and goes on without its value."""
    _log.exception("%s could not be written; what it follows stands.", step.what)
    return _followed(step.otherwise)
