"""Run a program on a connection, synchronously.

`Executor` is what a connection has to offer; a test may wrap one to fail between any two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from tidemill.sql.program import Batch, Commit, Program, Row, Statement, Step

T = TypeVar("T")


class Executor(Protocol):
    """One connection, and at most one open transaction on it."""

    @property
    def in_transaction(self) -> bool:
        """Whether `begin` was called and neither `commit` nor `rollback` since."""
        ...

    def begin(self, *, write: bool) -> None:
        """Open a transaction; `write` takes the write lock at once."""
        ...

    def step(self, step: Statement | Batch, /) -> Sequence[Row]:
        """Run one statement, or one batch of it, and answer its rows."""
        ...

    def commit(self) -> None:
        """Commit."""
        ...

    def rollback(self) -> None:
        """Undo what was written since `begin`; never fails."""
        ...


def run(program: Program[T], executor: Executor, *, write: bool) -> T:
    """Run a program to its end and commit; on any error roll back and let it pass.

    A transaction is opened by the first statement and by the first after each COMMIT, so a program
    that refuses its request at sight touches nothing.
    """
    try:
        answer = _drive(program, executor, write=write)
        if executor.in_transaction:
            executor.commit()
    except BaseException:
        executor.rollback()
        raise
    return answer


def _drive(program: Program[T], executor: Executor, *, write: bool) -> T:
    try:
        step = next(program)
        while True:
            step = program.send(_perform(step, executor, write=write))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _perform(step: Step, executor: Executor, *, write: bool) -> Sequence[Row]:
    if isinstance(step, Commit):
        if executor.in_transaction:
            executor.commit()
        return ()
    if not executor.in_transaction:
        executor.begin(write=write)
    return executor.step(step)
