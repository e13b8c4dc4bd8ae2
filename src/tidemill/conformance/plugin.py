"""Fixtures of the kit, what their authors supply for a store, and a line per store at the end.

Import everything from here into the `conftest.py` beside the glue, and add `store_factory`,
`own_clock_store_factory`, `block_writers` and, for a store that has bridges,
`transactions_factory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import pytest

from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock

StoreFactory = Callable[[VirtualClock], Store]
"""Answers an opened, migrated and empty store that keeps the given clock."""

BlockWriters = Callable[[], AbstractContextManager[object]]
"""Holds up every writer of the store's database while its context is open, where one can.

That is a database with one lock for all who write: somebody else holds it. The store gives up its
own calls meanwhile with `StoreUnavailable`, and what it measures its waits by moves along with the
`clock` fixture. On a database without such a lock, somebody else's transaction has written and is
open; one of which nobody else writes has a context that does nothing.
"""

_PROPERTY: Final = "conformance_store"
_BRIDGES: Final = "conformance_bridges"
_IN_TRANSACTIONS: Final = "conformance_in_transactions"


class Transaction(Protocol):
    """A transaction of a user's, on a connection of its own to the store's database."""

    @property
    def tx(self) -> object:
        """What the user gives to `enqueue_in`: a connection of a kind that is not awaited."""
        ...

    @property
    def statements(self) -> Sequence[str]:
        """Every statement that was run on the connection, whoever ran it, in order."""
        ...

    def write(self, row: str) -> None:
        """Insert a row into the user's own table, as part of it."""
        ...

    def commit(self) -> None:
        """Commit, as the user does."""
        ...

    def rollback(self) -> None:
        """Roll back, as the user does."""
        ...


class Transactions(Protocol):
    """A user who writes to a table of its own, empty at first, in the store's database."""

    def begin(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that has neither read nor written; left open, it is rolled back."""
        ...

    def without(self) -> AbstractContextManager[object]:
        """Open a connection on which no transaction is open, and which commits each statement."""
        ...

    def rows(self) -> Sequence[str]:
        """The rows of the user's table, as others see them."""
        ...


@pytest.fixture
def clock() -> VirtualClock:
    """The store's clock, which only the test moves."""
    return VirtualClock()


@pytest.fixture
def store(
    store_factory: StoreFactory,
    clock: VirtualClock,
    record_property: Callable[[str, object], None],
) -> Iterator[Store]:
    """An empty store on the virtual clock, closed after the fact."""
    opened = store_factory(clock)
    record_property(_PROPERTY, opened.capabilities.name)
    record_property(_BRIDGES, opened.capabilities.bridges)
    yield opened
    opened.close()


@pytest.fixture
def own_store(
    own_clock_store_factory: Callable[[], Store],
    record_property: Callable[[str, object], None],
) -> Iterator[Store]:
    """An empty store on its own clock, closed after the fact."""
    opened = own_clock_store_factory()
    record_property(_PROPERTY, opened.capabilities.name)
    yield opened
    opened.close()


@pytest.fixture
def transactions(
    store: Store,
    transactions_factory: Callable[[], Transactions],
    record_property: Callable[[str, object], None],
) -> Transactions:
    """A user who writes in the database of `store`, which is there already."""
    assert store.capabilities.bridges, "only a store that has bridges is shown in transactions"
    record_property(_IN_TRANSACTIONS, True)
    return transactions_factory()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many facts each store passed and failed, and whether it was seen in transactions."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed"):
        for ended in terminalreporter.getreports(outcome):
            told = dict(ended.user_properties)
            name = told.get(_PROPERTY)
            if name is not None:
                count = counts.setdefault(str(name), Counter())
                count[outcome] += 1
                count[_BRIDGES] += bool(told.get(_BRIDGES))
                count[_IN_TRANSACTIONS] += bool(told.get(_IN_TRANSACTIONS))
    for name, count in sorted(counts.items()):
        line = f"conformance of {name}: {count['passed']} facts hold, {count['failed']} do not"
        terminalreporter.write_line(f"{line}{_of_transactions(count)}")


def _of_transactions(count: Counter[str]) -> str:
    seen = count[_IN_TRANSACTIONS]
    where = f"; {seen or 'none'} of them in transactions of a user's"
    if seen:
        return where
    return where + (", although it has bridges" if count[_BRIDGES] else ", since it has no bridges")
