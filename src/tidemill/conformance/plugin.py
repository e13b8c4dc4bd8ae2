"""Fixtures of the kit, and a line per store at the end of a run.

Import everything from here into the `conftest.py` beside the glue, and add `store_factory` and
`own_clock_store_factory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock

StoreFactory = Callable[[VirtualClock], Store]
"""Answers an opened, migrated and empty store that keeps the given clock."""

_PROPERTY: Final = "conformance_store"


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many facts each store passed and failed."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed"):
        for ended in terminalreporter.getreports(outcome):
            name = dict(ended.user_properties).get(_PROPERTY)
            if name is not None:
                counts.setdefault(str(name), Counter())[outcome] += 1
    for name, count in sorted(counts.items()):
        line = f"conformance of {name}: {count['passed']} facts hold, {count['failed']} do not"
        terminalreporter.write_line(line)
