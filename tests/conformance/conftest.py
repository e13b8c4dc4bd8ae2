"""The stores that the kit runs on here: each is one factory."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.conformance.users import OnPostgres, OnSqlite
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers
from tests.postgres.servers import empty, fresh_database

from tidemill.adapters.host_clock import utc_now
from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.conformance import plugin
from tidemill.conformance.plugin import BlockWriters, StoreFactory, Transactions
from tidemill.drivers import sqlite as driver
from tidemill.store.contract import Clock, Store
from tidemill.store.memory import MemoryStore, VirtualClock

# Found by their names.
store, own_store, transactions = plugin.store, plugin.own_store, plugin.transactions

BRIEF = timedelta(milliseconds=20)
"""For what is waited for in vain: one caller at a time never waits otherwise."""


def memory(request: pytest.FixtureRequest) -> StoreFactory:
    return MemoryStore


def sqlite(request: pytest.FixtureRequest) -> StoreFactory:
    directory: Path = request.getfixturevalue("tmp_path")

    def opened(virtual: VirtualClock) -> Store:
        sqlite_store = SqliteStore(directory / "jobs.db", clock=virtual, busy_timeout=BRIEF)
        sqlite_store.migrate()
        return sqlite_store

    return opened


class Kept(PostgresStore):
    """A store that lives as long as the run: its connections know their statements already.

    Each fact finds it empty, and on a clock of its own.
    """

    def __init__(self, url: str) -> None:
        self._moment: Clock = VirtualClock()
        super().__init__(url, clock=self._now, hints=False)
        self.url = url
        self._sweeper = psycopg.connect(url, autocommit=True)

    def _now(self) -> datetime:
        return self._moment()

    def emptied(self, clock: Clock) -> Store:
        self._moment = clock
        empty(self._sweeper)
        return self

    def close(self) -> None:
        """A fact is over, and the next one comes."""

    def end(self) -> None:
        super().close()
        self._sweeper.close()


class TellingClock(VirtualClock):
    """A virtual clock that says when it moves."""

    moved: Callable[[datetime], object] = staticmethod(lambda _now: None)

    def advance(self, by: timedelta) -> datetime:
        now = super().advance(by)
        self.moved(now)
        return now

    def set(self, instant: datetime) -> datetime:
        now = super().set(instant)
        self.moved(now)
        return now


@pytest.fixture
def clock() -> TellingClock:
    return TellingClock()


class OnServersClock(Kept):
    """A store that asks its database for the time, as it does outside tests.

    In this database `clock_timestamp()` is found in a schema before the built-in one's, and answers
    what the virtual clock says: so every expression that takes a decision on the server is run on
    instants that a fact has chosen.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._site.clock = None

    def emptied(self, clock: Clock) -> Store:
        super().emptied(clock)
        assert isinstance(clock, TellingClock)
        clock.moved = lambda now: self._sweeper.execute("UPDATE fake.clock SET now = %s", (now,))
        clock.moved(clock())
        return self


FAKE_CLOCK = """
    CREATE SCHEMA fake;
    CREATE TABLE fake.clock (now timestamptz NOT NULL);
    INSERT INTO fake.clock VALUES ('2026-01-01 00:00:00Z');
    CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz
        LANGUAGE sql VOLATILE AS 'SELECT now FROM fake.clock';
    ALTER DATABASE {name} SET search_path = fake, pg_catalog
"""


@pytest.fixture(scope="session")
def servers_clock(postgres_18_server: str, worker_id: str) -> Iterator[OnServersClock]:
    with fresh_database(postgres_18_server, f"clock_{worker_id}") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FAKE_CLOCK.format(name=connection.info.dbname), prepare=False)
        kept = OnServersClock(url)
        yield kept
        kept.end()


@pytest.fixture(scope="session")
def kept_18(postgres_18: str) -> Iterator[Kept]:
    kept = Kept(postgres_18)
    yield kept
    kept.end()


@pytest.fixture(scope="session")
def kept_15(postgres_15: str) -> Iterator[Kept]:
    kept = Kept(postgres_15)
    yield kept
    kept.end()


def on_postgres_18(request: pytest.FixtureRequest) -> StoreFactory:
    return request.getfixturevalue("kept_18").emptied


def on_postgres_15(request: pytest.FixtureRequest) -> StoreFactory:
    return request.getfixturevalue("kept_15").emptied


def on_servers_clock(request: pytest.FixtureRequest) -> StoreFactory:
    return request.getfixturevalue("servers_clock").emptied


STORES: dict[str, Callable[[pytest.FixtureRequest], StoreFactory]] = {
    "memory": memory,
    "sqlite": sqlite,
    "postgres-18": on_postgres_18,
    "postgres-15": on_postgres_15,
}
ON_SERVERS_CLOCK = "postgres-18-servers-clock"
TIMED = (
    "test_claim", "test_fence", "test_lease", "test_notes", "test_renewal", "test_reports",
    "test_retries",
)  # fmt: skip
"""The topics that virtual time, told by the client, would let off the server's own expressions."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_factory" in metafunc.fixturenames:
        timed = metafunc.module.__name__.rpartition(".")[2] in TIMED
        names = [*STORES, ON_SERVERS_CLOCK] if timed else list(STORES)
        if "transactions" in metafunc.fixturenames:
            names = [name for name in names if name != "memory"]  # which has no bridges
        metafunc.parametrize("store_factory", names, indirect=True)


@pytest.fixture
def store_factory(request: pytest.FixtureRequest) -> StoreFactory:
    factories = STORES | {ON_SERVERS_CLOCK: on_servers_clock}
    return factories[request.param](request)


def users_of(request: pytest.FixtureRequest) -> Transactions | None:
    """Who writes beside the store of this fact; nobody does beside one in memory."""
    name = request.node.callspec.params["store_factory"]
    if name == "memory":
        return None
    if name == "sqlite":
        directory: Path = request.getfixturevalue("tmp_path")
        return OnSqlite(directory / "jobs.db")
    server = {"postgres-15": "postgres_15", "postgres-18": "postgres_18"}
    if name == ON_SERVERS_CLOCK:
        return OnPostgres(request.getfixturevalue("servers_clock").url)
    return OnPostgres(request.getfixturevalue(server[name]))


@pytest.fixture
def transactions_factory(request: pytest.FixtureRequest) -> Callable[[], Transactions]:
    def factory() -> Transactions:
        users = users_of(request)
        assert users is not None
        return users

    return factory


@pytest.fixture
def block_writers(
    request: pytest.FixtureRequest, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> BlockWriters:
    # Waits for the lock of a file are measured on the process's own clock.
    monkeypatch.setattr(driver, "elapsed", lambda: clock().timestamp())

    @contextmanager
    def blocked() -> Generator[None]:
        users = users_of(request)
        with nullcontext() if users is None else users.begin() as transaction:
            if transaction is not None:
                transaction.write("an order that takes long")
            yield

    return blocked


def own_clock_memory(request: pytest.FixtureRequest) -> Callable[[], Store]:
    return lambda: MemoryStore(utc_now)


def own_clock_sqlite(request: pytest.FixtureRequest) -> Callable[[], Store]:
    directory: Path = request.getfixturevalue("tmp_path")
    return lambda: SqliteStore(directory / "own.db")


def own_clock_postgres(request: pytest.FixtureRequest) -> Callable[[], Store]:
    url: str = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url)


OWN_CLOCKS: dict[str, Callable[[pytest.FixtureRequest], Callable[[], Store]]] = {
    "memory": own_clock_memory,
    "sqlite": own_clock_sqlite,
    "postgres-18": own_clock_postgres,
}


@pytest.fixture(params=OWN_CLOCKS)
def own_clock_store_factory(request: pytest.FixtureRequest) -> Callable[[], Store]:
    return OWN_CLOCKS[request.param](request)
