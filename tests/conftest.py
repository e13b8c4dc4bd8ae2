"""What every test may ask for."""

import os

import pytest
from hypothesis import settings

from tidemill.conformance.plugin import (
    pytest_terminal_summary,  # noqa: F401 - a line per store at the end of every run
)

# No deadline for one example: a busy machine is no fault of the code. Under CI
# Hypothesis draws the same examples every time.
settings.register_profile(
    "tidemill",
    parent=settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
)
settings.load_profile("tidemill")


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the only loop the shell speaks."""
    return "asyncio"
