"""A connection of our own, as far as it is the same whichever driver it is of.

Nothing is set for longer than a transaction, so that a pooler which hands connections from one
client to the next, such as pgbouncer in transaction mode, never sees a setting leak.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from tidemill.drivers.run_inside import bind
from tidemill.errors import AnswerLost, StoreUnavailable
from tidemill.sql.catalogue import Catalogue
from tidemill.store.contract import Clock

C = TypeVar("C")

_MILLISECOND = timedelta(milliseconds=1)

STATEMENT_TIMEOUT: Final = timedelta(seconds=10)
LOCK_TIMEOUT: Final = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the server lets one of our transactions wait.

    Attributes:
        statement: for one statement.
        lock: for one lock.
        idle: for our next statement, with a transaction open.
    """

    statement: timedelta = STATEMENT_TIMEOUT
    lock: timedelta = LOCK_TIMEOUT
    idle: timedelta = timedelta(seconds=30)


UNHURRIED: Final = Limits(timedelta(0), timedelta(0), timedelta(0))
"""No limits: for migrations, which wait for each other and may take long."""


def beginnings(limits: Limits) -> dict[bool, str]:
    """How a transaction begins, by whether it writes.

    Whatever the database's default, what writes is READ COMMITTED, since the programs look again at
    what they locked; and what reads in several statements sees one state.
    Plans are generic, since each statement's generic plan is proved by a test and planning would
    cost more than running.
    """
    settings = {
        "statement_timeout": str(limits.statement // _MILLISECOND),
        "lock_timeout": str(limits.lock // _MILLISECOND),
        "idle_in_transaction_session_timeout": str(limits.idle // _MILLISECOND),
        "plan_cache_mode": "force_generic_plan",
    }
    local = "".join(f"; SET LOCAL {name} = {value}" for name, value in settings.items())
    return {
        True: f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE{local}",
        False: f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{local}",
    }


class PostgresSession(Generic[C]):
    """What the executors of all drivers are made of.

    Args:
        connection: in autocommit, with no transaction open.
        catalogue: of the PostgreSQL dialect.
        beginnings: how a transaction begins, by whether it writes.
        clock: what stands for the store's clock in tests; None asks the server's.
    """

    def __init__(
        self,
        connection: C,
        catalogue: Catalogue,
        beginnings: Mapping[bool, str],
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._beginnings = beginnings
        self._bind = partial(bind, catalogue=catalogue, clock=clock)


@contextmanager
def answer_may_be_lost(connection: Breakable) -> Generator[None]:
    """Around a write that commits by itself: if the connection breaks, nobody knows.

    Raises:
        AnswerLost: it broke.
    """
    try:
        yield
    except StoreUnavailable as error:
        if connection.broken:
            message = f"The connection broke before a commit was answered: {error}"
            raise AnswerLost(message) from error
        raise


class Breakable(Protocol):
    """A connection, as far as it can break."""

    @property
    def broken(self) -> bool:
        """Whether it is gone."""
        ...
