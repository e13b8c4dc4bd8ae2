"""Operation and Store: the whole seam between Tidemill and a database.

Rules that hold for every operation:

* It is one transaction: all of it commits or none. Where its docstring says that a part follows
  in a transaction of its own, that part may be lost alone, and takes back no answer.
* Decisions about time are taken on the store's clock (clause A1), never on the caller's.
* Refusals are `Refused` errors raised before anything is written; expected outcomes are values.
* `StoreUnavailable` means that nothing was committed; `AnswerLost` that something may have been.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from tidemill.values.bounds import Bounds
from tidemill.values.doctor import DatabaseHealth

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

Clock = Callable[[], datetime]
"""Tells the store's time: aware, UTC."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[R_co]):
    """A request to a store; the type parameter is what performing it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store adds beyond the contract. They cost latency or convenience, never correctness.

    Attributes:
        name: how documentation calls the store.
        hints: it can tell its own process that something may be due.
        persistent: it survives the process. `tidemill worker` refuses a store that does not.
        bridges: it can take part in a transaction of the application's.
    """

    name: str
    hints: bool
    persistent: bool
    bridges: bool = False


class SyncChannel(Protocol):
    """Performs operations, blocking the calling thread."""

    def perform(self, operation: Operation[R]) -> R:
        """Perform one operation and answer its result."""
        ...


class Store(Protocol):
    """A store, open for use from any thread and any event loop.

    Constructing one opens nothing; the first operation does. `close` may be called twice.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this store adds beyond the contract."""
        ...

    @property
    def bounds(self) -> Bounds:
        """The bounds it keeps."""
        ...

    async def perform(self, operation: Operation[R]) -> R:
        """Perform one operation from a coroutine, without blocking its loop.

        One whose caller is cancelled before its turn has come is never performed. One that has
        begun goes on to its end, or ends with its connection, which may never answer again: then
        it may or may not have been committed.
        """
        ...

    def perform_sync(self, operation: Operation[R]) -> R:
        """Perform one operation from a thread, blocking it."""
        ...

    def dedicated(self) -> AbstractContextManager[SyncChannel]:
        """A connection of its own for the calling thread: what a heart beats through."""
        ...

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when there may be news; answers how to stop.

        News is something that may be due, or a running job that is asked to cancel. A hint may be
        lost, doubled or late (promise P7). Without the capability it is never called.
        """
        ...

    def migrate(self) -> tuple[str, ...]:
        """Bring the schema up to date and answer the names of the steps applied."""
        ...

    def plan(self) -> tuple[tuple[str, str], ...]:
        """The steps `migrate` would apply: (name, SQL) each, in order."""
        ...

    def examine(self) -> DatabaseHealth:
        """What the database says of itself, whatever its schema; nothing is written.

        It blocks the calling thread, for a second at most beyond the questions themselves.
        """
        ...

    def looking(self) -> AbstractContextManager[SyncChannel]:
        """A channel for the calling thread, for operations that only read.

        It changes nothing, neither rows nor settings of the database nor files, and what each
        operation may take is limited.
        """
        ...

    def close(self) -> None:
        """Close what this process opened."""
        ...
