"""An app whose own store is never to be touched, and a harness around it."""

from collections.abc import Iterator

import pytest

from tidemill import Tidemill
from tidemill.testing import Harness


@pytest.fixture
def mill() -> Tidemill:
    return Tidemill("sqlite:///never-opened.db")


@pytest.fixture
def h(mill: Tidemill) -> Iterator[Harness]:
    with Harness(mill, start="2026-03-01T00:00Z") as harness:
        yield harness
