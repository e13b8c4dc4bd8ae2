"""Run a program on a connection, synchronously.

`Executor` is what a connection has to offer; a test may wrap one to fail between any two steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tidemill.errors import AnswerLost, Refused, StoreUnavailable
from tidemill.sql.program import Batch, Commit, FollowUp, Program, Row, Statement

_log = logging.getLogger("tidemill.store")

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


class Patience(Protocol):
    """Calls `do`, again if the database was busy, and answers what it answers."""

    def __call__(self, do: Callable[[], T], /) -> T:
        """Call it."""
        ...


def once(do: Callable[[], T], /) -> T:
    """No patience: call it once."""
    return do()


def run(program: Program[T], executor: Executor, *, write: bool, patiently: Patience = once) -> T:
    """Run a program to its end and commit; on any error roll back and let it pass.

    A transaction is opened by the first statement and by the first after each commit, so a program
    that refuses its request at sight touches nothing. Each of its follow-ups is tried again on its
    own, as `patiently` says. Whoever tries the whole again does so for `StoreUnavailable` alone.

    Raises:
        StoreUnavailable: nothing was committed.
        AnswerLost: a fault came after a commit, in the program itself.
    """
    return _Run(executor, write=write, patiently=patiently).run(program)


class _Run:
    """One run of a program, which knows whether something was committed."""

    def __init__(self, executor: Executor, *, write: bool, patiently: Patience) -> None:
        self._executor = executor
        self._write = write
        self._patiently = patiently
        self._committed = False

    def run(self, program: Program[T]) -> T:
        try:
            answer = self._drive(program)
            self._commit()
        except (StoreUnavailable, Refused) as error:
            self._executor.rollback()
            if self._committed:
                message = f"A part of this was committed before a fault: {error} Ask again."
                raise AnswerLost(message) from error
            raise
        except BaseException:
            self._executor.rollback()
            raise
        return answer

    def _drive(self, program: Program[T]) -> T:
        try:
            step = next(program)
            while True:
                if isinstance(step, Commit):
                    self._commit()
                    rows: Sequence[Row] = ()
                elif isinstance(step, FollowUp):
                    self._commit()
                    rows = ({"value": self._follow_up(step)},)
                else:
                    rows = self._perform(step)
                step = program.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    def _perform(self, step: Statement | Batch) -> Sequence[Row]:
        if not self._executor.in_transaction:
            self._executor.begin(write=self._write)
        return self._executor.step(step)

    def _commit(self) -> None:
        if self._executor.in_transaction:
            self._executor.commit()
            self._committed = True

    def _follow_up(self, step: FollowUp) -> Any:
        def try_it() -> Any:
            return run(step.make(), self._executor, write=self._write, patiently=self._patiently)

        try:
            return self._patiently(try_it)
        except Exception:  # noqa: BLE001 - whatever it is, the answer that was committed stands
            _log.exception("%s could not be written; what it follows stands.", step.what)
            return step.otherwise
