"""The pytest plugin. It stands outside the package so that pytest does not load it at start-up.

Everything of Tidemill is imported when the first test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tidemill import Tidemill
    from tidemill.testing import Harness

_OPTION = "tidemill_app"
_MARKER = (
    "tidemill(start=..., queues=..., concurrency=..., inline=..., give_up_after=..., "
    "most_executions=...): what the harness of the `tidemill` fixture is made with."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the name of the app from pytest's settings."""
    parser.addini(_OPTION, "the app of the `tidemill` fixture, such as orders:mill", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def tidemill_app(pytestconfig: pytest.Config) -> Tidemill:
    """The app that the `tidemill` fixture tests: override this, or set `tidemill_app`."""
    from tidemill.app import Tidemill  # noqa: PLC0415 - not at pytest's start-up

    name: str = pytestconfig.getini(_OPTION)
    if not name:
        message = (
            "Which app? Set `tidemill_app = orders:mill` in pytest's settings, or define a "
            "fixture `tidemill_app` that returns it."
        )
        raise pytest.UsageError(message)
    try:
        app: object = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"tidemill_app={name!r} cannot be found: {error}"
        raise pytest.UsageError(message) from error
    if not isinstance(app, Tidemill):
        message = f"tidemill_app={name!r} is {app!r}, which is no Tidemill app."
        raise pytest.UsageError(message)
    return app


@pytest.fixture
def tidemill(request: pytest.FixtureRequest, tidemill_app: Tidemill) -> Iterator[Harness]:
    """A harness around the app, open for this test."""
    from tidemill.testing import Harness  # noqa: PLC0415 - not at pytest's start-up

    marker: Any = request.node.get_closest_marker("tidemill")
    options: dict[str, Any] = marker.kwargs if marker else {}
    with Harness(tidemill_app, **options) as harness:
        yield harness
