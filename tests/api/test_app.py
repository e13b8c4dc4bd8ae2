"""The app: its store, and when it is opened."""

from pathlib import Path

import pytest

from tidemill import Bounds, Tidemill
from tidemill.errors import ConfigurationError, StoreNotConfigured
from tidemill.store.memory import MemoryStore, VirtualClock


class Closing(MemoryStore):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_constructing_opens_nothing(tmp_path: Path) -> None:
    Tidemill(f"sqlite:///{tmp_path}/orders.db")
    assert list(tmp_path.iterdir()) == []


async def test_an_app_without_a_store_says_how_to_give_it_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIDEMILL_STORE", raising=False)
    with pytest.raises(StoreNotConfigured, match=r"mill\.configure\(url\).*TIDEMILL_STORE"):
        await Tidemill().jobs.counts()


async def test_the_environment_names_the_store_of_an_app_that_names_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIDEMILL_STORE", "memory://")
    assert await Tidemill().jobs.counts() == ()
    monkeypatch.setenv("TIDEMILL_STORE", "nonsense://")
    assert await Tidemill("memory://").jobs.counts() == ()


@pytest.mark.parametrize(
    "url", ["redis://user:hidden@host/0", "hidden.db", "", "postgresql:hidden"]
)
def test_a_scheme_that_is_not_supported_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite:///path.*memory://") as raised:
        Tidemill(url)
    assert "hidden" not in str(raised.value)


def test_a_url_and_a_store_are_one_too_many(store: MemoryStore) -> None:
    with pytest.raises(ConfigurationError, match="either"):
        Tidemill("memory://", store=store)


def test_a_memory_url_is_one_store_with_the_apps_bounds() -> None:
    mill = Tidemill("memory://", bounds=Bounds(payload_bytes=7))
    assert mill.store is mill.store
    assert mill.store.bounds.payload_bytes == 7
    assert isinstance(mill.store, MemoryStore)


async def test_jobs_are_stored_in_the_store_the_app_is_configured_with(
    clock: VirtualClock,
) -> None:
    first, second = MemoryStore(clock), MemoryStore(clock)
    mill = Tidemill()
    mill.configure(first)

    @mill.job("sell")
    def sell() -> None: ...

    ref = await sell.enqueue()
    mill.configure(second)
    other = await sell.enqueue()
    assert [job.id for job in (await Tidemill(store=first).jobs.list()).jobs] == [ref.id]
    assert [job.id for job in (await Tidemill(store=second).jobs.list()).jobs] == [other.id]


def test_an_app_closes_only_what_it_opened(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.store.memory.MemoryStore", Closing)
    given = Closing(clock)
    mill = Tidemill(store=given)
    mill.close()
    mill.configure("memory://")
    opened = mill.store
    assert isinstance(opened, Closing)
    mill.close()
    mill.close()
    assert (given.closed, opened.closed) == (0, 1)
    again = mill.store
    assert isinstance(again, Closing)
    assert again is not opened
    mill.configure(given)
    assert (given.closed, again.closed) == (0, 1)


async def test_a_sqlite_url_is_a_file(tmp_path: Path) -> None:
    mill = Tidemill(f"sqlite:///{tmp_path}/orders.db")
    mill.store.migrate()

    @mill.job("sell")
    def sell(number: int) -> None: ...

    ref = await sell.with_options(expires="1h").enqueue(7)
    details = await mill.jobs.get(ref)
    assert details.payload == b'{"number":7}'
    assert details.record.not_after is not None
    mill.close()
    assert (tmp_path / "orders.db").exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, "<Tidemill without a store, 0 jobs>"),
        ("sqlite:///orders.db", "<Tidemill on sqlite:///orders.db, 0 jobs>"),
        ("sqlite:////srv/o.db?synchronous=FULL", "<Tidemill on sqlite:////srv/o.db, 0 jobs>"),
    ],
)
def test_an_app_shows_its_store_and_how_many_jobs_it_has(url: str | None, shown: str) -> None:
    assert repr(Tidemill(url)) == shown


def test_an_app_shows_no_secret_of_its_url(
    monkeypatch: pytest.MonkeyPatch, store: MemoryStore
) -> None:
    monkeypatch.setattr("tidemill.app.require_scheme", str)
    mill = Tidemill("postgresql://ada:hidden@db:5432/jobs?password=hidden")
    mill.job("a", aliases=["b"])(print_nothing)
    assert repr(mill) == "<Tidemill on postgresql://ada@db:5432/jobs, 1 job>"
    assert repr(Tidemill(store=store)) == f"<Tidemill on a {store.capabilities.name} store, 0 jobs>"


def print_nothing() -> None: ...


def test_an_app_knows_the_url_it_was_given(
    monkeypatch: pytest.MonkeyPatch, store: MemoryStore
) -> None:
    monkeypatch.setenv("TIDEMILL_STORE", "memory://")
    mill = Tidemill()
    assert mill.url is None
    assert mill.store
    assert mill.url == "memory://"
    mill.configure(store)
    assert mill.url is None
