"""What every test may ask for."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the only loop the shell speaks."""
    return "asyncio"
