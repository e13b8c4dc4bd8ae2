"""Run a program on a connection: `run` blocks, `run_async` awaits, and both take the same course.

`Executor` is what a connection has to offer; a test may wrap one to fail between any two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tidemill.errors import AnswerLost, StoreUnavailable
from tidemill.sql.program import COMMIT, Batch, Commit, Program, Row, Statement

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


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a transaction."""

    write: bool


Act = Begin | Statement | Batch | Commit
Course = Generator[Act, Sequence[Row], T]
Closing = Callable[[T], Sequence[Statement]]
"""What else is to be said in the last transaction, once the answer is known."""


def nothing_else(_answer: object) -> Sequence[Statement]:
    return ()


def run(
    program: Program[T],
    executor: Executor,
    *,
    write: bool,
    closing: Closing[T] = nothing_else,
) -> T:
    """Run a program to its end and commit; on any error roll back and let it pass.

    Raises:
        AnswerLost: a part was committed and a later one failed, so the answer to both is gone.
    """
    return _drive(in_transactions(program, write=write, closing=closing), executor)


def look(program: Program[T], executor: Executor) -> T:
    """Run a program outside any transaction: each of its statements is one of its own."""
    return _drive(program, executor)


async def run_async(
    program: Program[T],
    executor: AsyncExecutor,
    *,
    write: bool,
    closing: Closing[T] = nothing_else,
) -> T:
    """The same as `run`, awaited."""
    return await _drive_async(in_transactions(program, write=write, closing=closing), executor)


async def look_async(program: Program[T], executor: AsyncExecutor) -> T:
    """The same as `look`, awaited."""
    return await _drive_async(program, executor)


def in_transactions(
    program: Program[T], *, write: bool, closing: Closing[T] = nothing_else
) -> Course[T]:
    """What a connection has to do for a program, in order.

    A transaction is opened by the first statement and by the first after each COMMIT, so a program
    that refuses its request at sight touches nothing.
    """
    progress = _Progress()
    try:
        answer = yield from _steps(program, progress, write=write)
        if progress.opened:
            for statement in closing(answer):  # noqa: UP028 - a tuple cannot be sent the rows
                yield statement
            yield COMMIT
    except StoreUnavailable as error:
        if progress.committed:
            message = f"A part of the request was committed, and then: {error}"
            raise AnswerLost(message) from error
        raise
    return answer


@dataclass(slots=True)
class _Progress:
    """How far a program has come: whether a transaction is open, and whether one is behind it."""

    opened: bool = False
    committed: bool = False


def _steps(program: Program[T], progress: _Progress, *, write: bool) -> Course[T]:
    rows: Sequence[Row] | None = None
    while True:
        try:
            step = next(program) if rows is None else program.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer
        if not isinstance(step, Commit):
            if not progress.opened:
                yield Begin(write)
                progress.opened = True
            rows = yield step
            continue
        if progress.opened:
            yield COMMIT
            progress.opened, progress.committed = False, True
        rows = ()


def _drive(course: Course[T], executor: Executor) -> T:
    rows: Sequence[Row] | None = None
    try:
        while True:
            act = next(course) if rows is None else course.send(rows)
            try:
                rows = _do(act, executor)
            except StoreUnavailable as error:
                course.throw(error)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except BaseException:
        executor.rollback()
        raise


def _do(act: Act, executor: Executor) -> Sequence[Row]:
    match act:
        case Begin(write):
            executor.begin(write=write)
        case Commit():
            executor.commit()
        case _:
            return executor.step(act)
    return ()


async def _drive_async(course: Course[T], executor: AsyncExecutor) -> T:
    rows: Sequence[Row] | None = None
    try:
        while True:
            act = next(course) if rows is None else course.send(rows)
            try:
                rows = await _do_async(act, executor)
            except StoreUnavailable as error:
                course.throw(error)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except BaseException:
        await executor.rollback()
        raise


async def _do_async(act: Act, executor: AsyncExecutor) -> Sequence[Row]:
    match act:
        case Begin(write):
            await executor.begin(write=write)
        case Commit():
            await executor.commit()
        case _:
            return await executor.step(act)
    return ()
