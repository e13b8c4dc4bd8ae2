"""The stores that the kit runs on here: each is one factory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tidemill.adapters.sqlite import SqliteStore, utc_now
from tidemill.conformance import plugin
from tidemill.conformance.plugin import StoreFactory
from tidemill.store.contract import Store
from tidemill.store.memory import MemoryStore, VirtualClock

clock, store, own_store = plugin.clock, plugin.store, plugin.own_store  # found by their names


def memory(directory: Path) -> StoreFactory:
    return MemoryStore


def sqlite(directory: Path) -> StoreFactory:
    def opened(virtual: VirtualClock) -> Store:
        sqlite_store = SqliteStore(directory / "jobs.db", clock=virtual)
        sqlite_store.migrate()
        return sqlite_store

    return opened


STORES: dict[str, Callable[[Path], StoreFactory]] = {"memory": memory, "sqlite": sqlite}


@pytest.fixture(params=STORES)
def store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    return STORES[request.param](tmp_path)


@pytest.fixture(params=["memory", "sqlite"])
def own_clock_store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    if request.param == "memory":
        return lambda: MemoryStore(utc_now)
    return lambda: SqliteStore(tmp_path / "own.db")
