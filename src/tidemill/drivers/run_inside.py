"""Run a course inside a transaction that somebody else began and will end.

Here is no way to begin, commit or roll back, and nothing is ever tried again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Batch, Row, Statement, Step
from tidemill.store.contract import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Say:
    """A statement without parameters and rows that no catalogue holds, such as a savepoint."""

    sql: str


SAVEPOINT: Final = Say("SAVEPOINT tidemill")

Act = Statement | Batch | Say
Course = Generator[Step | Say, Sequence[Row], T]
"""What is done inside a transaction, in order: a program, and what goes around it. A step that
fails raises StepFailed in it where it was yielded, so that it may undo what it did."""


class StepFailed(Exception):
    """Raised in a course, and in nobody else: the database answered a step with this error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Steps(Protocol):
    """A connection with somebody's transaction open on it."""

    def step(self, act: Act, /) -> Sequence[Row]:
        """Do one thing, and answer its rows."""
        ...


class AsyncSteps(Protocol):
    """The same, awaited."""

    async def step(self, act: Act, /) -> Sequence[Row]:
        """Do one thing, and answer its rows."""
        ...


def bind(act: Act, catalogue: Catalogue, clock: Clock | None) -> tuple[str, tuple[object, ...]]:
    """The text of one thing to do and its values, in a dialect that has arrays."""
    match act:
        case Say(sql):
            return sql, ()
        case Batch(name, rows):
            return catalogue.bind_columns(name, rows)
        case Statement(name, parameters):
            if clock is None:
                return catalogue.bind(name, parameters)
            return catalogue.bind(name, parameters, clock)


def called(act: Act) -> str:
    """What an error calls it."""
    return act.sql if isinstance(act, Say) else act.name


def run_inside(course: Course[T], steps: Steps) -> T:
    """Run a course to its end.

    Raises:
        TypeError: it would commit, which is not its own to do.
    """
    go_on = partial(next, course)
    try:
        while True:
            act = _without_commits(go_on())
            try:
                rows = steps.step(act)
            except BaseException as error:  # noqa: BLE001 - the course undoes, and lets it pass
                go_on = partial(course.throw, _for_course(error))
            else:
                go_on = partial(course.send, rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except StepFailed as failed:
        raise failed.error from failed.error.__cause__


async def run_inside_async(course: Course[T], steps: AsyncSteps) -> T:
    """The same, awaited."""
    go_on = partial(next, course)
    try:
        while True:
            act = _without_commits(go_on())
            try:
                rows = await steps.step(act)
            except BaseException as error:  # noqa: BLE001 - the course undoes, and lets it pass
                go_on = partial(course.throw, _for_course(error))
            else:
                go_on = partial(course.send, rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except StepFailed as failed:
        raise failed.error from failed.error.__cause__


def _for_course(error: BaseException) -> BaseException:
    """A caller that gives up is no failure of the step, which may have been done."""
    return StepFailed(error) if isinstance(error, Exception) else error


def _without_commits(act: Step | Say) -> Act:
    if isinstance(act, Statement | Batch | Say):
        return act
    message = f"A program that asks for {act!r} cannot run in somebody else's transaction."
    raise TypeError(message)
