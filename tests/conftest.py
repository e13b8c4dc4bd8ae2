"""What every test may ask for."""

import os

import pytest
from hypothesis import settings
from tests.postgres.servers import closing_line

from tidemill.conformance import plugin

# No deadline for one example: a busy machine is no fault of the code. Under CI
# Hypothesis draws the same examples every time.
settings.register_profile(
    "tidemill",
    parent=settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
)
settings.load_profile("tidemill")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line per store, and what this host did not let run."""
    plugin.pytest_terminal_summary(terminalreporter)
    closing_line(terminalreporter)


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the only loop the shell speaks."""
    return "asyncio"
