"""A process that is a worker and nothing else: what it closes at its end."""

import asyncio
import logging

import pytest

from tidemill.shell import process
from tidemill.shell.process import run_process


class Working:
    """A worker that runs for a turn of the loop."""

    unfinished = 0

    def __init__(self, said, fault=None):
        self.said = said
        self.fault = fault

    async def run(self, _hearing):
        await asyncio.sleep(0)
        self.said.append("drained")
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def said():
    return []


@pytest.fixture
def close(said):
    async def close():
        said.append("closed")

    return close


def test_what_services_come_from_is_closed_after_the_drain(said, close):
    run_process(Working(said), close=close)
    assert said == ["drained", "closed"]


def test_closing_may_be_a_plain_function(said):
    run_process(Working(said), close=lambda: said.append("closed"))
    assert said == ["drained", "closed"]


def test_it_is_closed_after_a_fault_of_the_worker_which_is_raised(said, close):
    with pytest.raises(OSError, match="boom"):
        run_process(Working(said, OSError("boom")), close=close)
    assert said == ["drained", "closed"]


def test_what_cannot_be_closed_is_logged_and_the_process_ends_in_order(said, caplog):
    async def close():
        message = "no more"
        raise OSError(message)

    run_process(Working(said), close=close)
    (logged,) = caplog.records
    assert logged.levelno == logging.ERROR
    assert "could not be closed" in logged.message
    assert logged.exc_info


def test_what_takes_too_long_to_close_is_given_up(said, caplog, monkeypatch):
    monkeypatch.setattr(process, "CLOSING_SECONDS", 0.01)
    run_process(Working(said), close=lambda: asyncio.Event().wait())
    assert "could not be closed" in caplog.text
