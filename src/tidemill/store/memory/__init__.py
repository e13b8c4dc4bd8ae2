"""The memory store: the deterministic reference implementation of the storage contract."""

from tidemill.store.memory.clock import VirtualClock
from tidemill.store.memory.store import MemoryStore

__all__ = ["MemoryStore", "VirtualClock"]
