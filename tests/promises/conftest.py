"""A site for every test, once on SQLite and once on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.postgres.own_server import _own_server, own_server
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers
from tests.promises.site import Site, site_on
from tests.waiting import wait_until

__all__ = ["_own_server", "own_server"]


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'promises.db'}"
    else:
        url = request.getfixturevalue("postgres_url")
    with site_on(url, tmp_path) as site:
        yield site


@pytest.fixture
def postgres_site(postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    with site_on(postgres_url, tmp_path) as site:
        yield site


@pytest.fixture
def sqlite_site(tmp_path: Path) -> Iterator[Site]:
    with site_on(f"sqlite:///{tmp_path / 'promises.db'}", tmp_path) as site:
        yield site


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[[Callable[[], object]], None]:
    return wait_until
