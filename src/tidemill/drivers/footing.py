"""What a store lends to a transaction of the user's: its statements, its clock and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from tidemill.sql.catalogue import Catalogue
from tidemill.sql.program import Statement
from tidemill.sql.programs.env import Env
from tidemill.store.contract import Clock, Operation

Database = Literal["PostgreSQL", "SQLite"]

Riding = Callable[[Operation[Any], Any], Sequence[Statement]]
"""What else is said in the transaction, once an operation's answer is known."""


def nothing(_operation: Operation[Any], _answer: object) -> Sequence[Statement]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """A store, as a bridge stands on it.

    Attributes:
        database: the kind of database that the transaction has to be on.
        catalogue: the store's statements.
        env: what its programs are given.
        clock: what tells its time; None asks the server's.
        lock_wait: how long one statement may wait for a lock.
        riding: what rides in the transaction, such as a notification.
        file: where an SQLite store is.
    """

    database: Database
    catalogue: Catalogue
    env: Env
    clock: Clock | None
    lock_wait: timedelta
    riding: Riding = nothing
    file: Path | None = None


@runtime_checkable
class Lends(Protocol):
    """A store that operations can be performed on in a transaction of the user's."""

    def footing(self) -> Footing:
        """What a bridge stands on. Opens nothing."""
        ...
