"""An application with a table of its own beside the jobs, and transactions of every kind on it."""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE, Opener
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers

from tidemill import JobHandle, Tidemill
from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.contract import Store
from tidemill.store.monitor import ListJobs
from tidemill.values.jobs import JobRecord

PATIENT = timedelta(seconds=30)
"""Longer than any transaction of a test stays open."""
BRIEF = timedelta(milliseconds=100)
"""For tests in which what is waited for does not come."""
ORDERS = "CREATE TABLE IF NOT EXISTS orders (name text NOT NULL)"

Look = Callable[[str], list[Any]]


class Shop:
    """The application, and what others see of its database."""

    def __init__(self, store: Store, place: str, look: Look) -> None:
        self.store = store
        self.place = place
        self.look = look
        self.mill = mill = Tidemill(store=store)

        @mill.job("orders.capture")
        async def capture(payment: str) -> str:
            return payment

        self.capture = capture

    def keyed(self, key: str) -> JobHandle[..., str]:
        return self.capture.with_options(idempotency_key=key)

    def jobs(self) -> list[JobRecord]:
        return list(self.store.perform_sync(ListJobs(limit=1000)).jobs)

    def ids(self) -> list[Any]:
        return [job.id for job in self.jobs()]

    def orders(self) -> list[str]:
        return [row[0] for row in self.look("SELECT name FROM orders ORDER BY name")]


@contextmanager
def shop_on_sqlite(path: Path, lock_wait: timedelta) -> Generator[Shop]:
    store = SqliteStore(path, busy_timeout=lock_wait)
    store.migrate()

    def look(sql: str) -> list[Any]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(sql).fetchall()

    look(ORDERS)
    yield Shop(store, str(path), look)
    store.close()


@contextmanager
def shop_on_postgres(url: str, lock_wait: timedelta) -> Generator[Shop]:
    store = PostgresStore(url, lock_timeout=lock_wait, hints=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"{ORDERS}; DELETE FROM orders")
        yield Shop(store, url, lambda sql: connection.execute(sql.encode()).fetchall())
    store.close()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Shop]:
    with shop_on_sqlite(tmp_path / "shop.db", PATIENT) as shop:
        yield shop


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Shop]:
    with shop_on_postgres(postgres_url, PATIENT) as shop:
        yield shop


@pytest.fixture
def brief_on_sqlite(tmp_path: Path) -> Iterator[Shop]:
    """Where nothing is waited for long."""
    with shop_on_sqlite(tmp_path / "shop.db", BRIEF) as shop:
        yield shop


@pytest.fixture
def brief_on_postgres(postgres_url: str) -> Iterator[Shop]:
    """Where nothing is waited for long."""
    with shop_on_postgres(postgres_url, BRIEF) as shop:
        yield shop


KINDS = [
    *[pytest.param(("on_sqlite", kind), id=f"sqlite: {kind}") for kind in ON_SQLITE],
    *[pytest.param(("on_postgres", kind), id=f"postgres: {kind}") for kind in ON_POSTGRES],
]


@dataclass
class Where:
    """The application on one database, and one kind of transaction there."""

    shop: Shop
    opener: Opener

    def transaction(self) -> Any:
        return self.opener(self.shop.place)


def somewhere(request: pytest.FixtureRequest, brief: str = "") -> Where:
    database, kind = request.param
    openers = ON_SQLITE if database == "on_sqlite" else ON_POSTGRES
    return Where(request.getfixturevalue(brief + database), openers[kind])


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest) -> Where:
    """Every kind of transaction in turn."""
    return somewhere(request)


@pytest.fixture(params=KINDS)
def brief(request: pytest.FixtureRequest) -> Where:
    """Every kind of transaction in turn, where nothing is waited for long."""
    return somewhere(request, "brief_")


@pytest.fixture(params=list(ON_POSTGRES))
def on_server(request: pytest.FixtureRequest, on_postgres: Shop) -> Where:
    """Every kind of transaction on PostgreSQL in turn."""
    return Where(on_postgres, ON_POSTGRES[request.param])


@pytest.fixture(params=list(ON_SQLITE))
def on_file(request: pytest.FixtureRequest, on_sqlite: Shop) -> Where:
    """Every kind of transaction on SQLite in turn."""
    return Where(on_sqlite, ON_SQLITE[request.param])
