"""Statement and Program: a storage operation as a generator.

A program yields named statements, is sent the rows of each, and returns a value. It knows no
connection, so one text of it runs synchronously and asynchronously, on our own connections and in
a user's transaction, and can be interrupted between any two statements by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Row(Protocol):
    """A row whose columns are read by name. Values are as the driver gave them."""

    def __getitem__(self, column: str, /) -> Any:
        """The value of a column."""
        ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement by its name in the catalogue, with plain Python parameters.

    A parameter that is a tuple is a list: the dialect expands it.
    """

    name: str
    params: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Batch:
    """One statement for many sets of parameters: run for each, or once over all of them.

    It is answered by what the dialect's statement says about the whole batch, if anything.
    """

    name: str
    rows: Sequence[Mapping[str, object]]


class Commit:
    """Ends the transaction; what follows is in a new one.

    A fault after it is told as one that left something behind: such a program is never tried again
    by whoever runs it, so this is for programs whose callers may simply ask again.
    """


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Commits, then has another program run, in transactions of its own.

    What came before stands whatever becomes of it: it is tried again on its own, and if it fails
    for good that is logged, and `otherwise` is taken for its value.

    Attributes:
        make: makes the program, once for each try.
        otherwise: its value if it fails.
        what: what is then lost, for the log.
    """

    make: Callable[[], Program[Any]]
    otherwise: object
    what: str


COMMIT: Final = Commit()
Step = Statement | Batch | Commit | FollowUp
Program = Generator[Step, Sequence[Row], T]


def each(steps: Iterable[S]) -> Generator[S, Sequence[Row]]:
    """Yield steps whose rows nobody reads."""
    for step in steps:  # noqa: UP028 - what is iterated over cannot be sent the rows
        yield step


def follow_up(make: Callable[[], Program[T]], otherwise: T, what: str) -> Program[T]:
    """Yield a `FollowUp` and answer its value."""
    rows = yield FollowUp(make, otherwise, what)
    value: T = rows[0]["value"]
    return value
