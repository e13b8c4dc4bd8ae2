"""An app on the memory store, in virtual time."""

import pytest

from tidemill import Tidemill
from tidemill.store.memory import MemoryStore, VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(clock: VirtualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
def mill(store: MemoryStore) -> Tidemill:
    return Tidemill(store=store)
