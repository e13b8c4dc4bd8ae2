"""The worker's log: a line per event, for people and for machines."""

import logging
import sys

import msgspec
import pytest

from tidemill.cli.log_lines import JsonLines, TextLines, write_log


def record(message="Job %d began.", *arguments, error=None, **extra):
    made = logging.LogRecord("tidemill.worker", logging.INFO, "x.py", 1, message, arguments, error)
    made.created = 1_772_355_600.25
    vars(made).update(extra)
    return made


def test_text_says_when_how_grave_and_what():
    assert TextLines().format(record("Job %d began.", 7)) == (
        "2026-03-01 09:00:00Z INFO    Job 7 began."
    )


def test_each_line_of_one_process_among_several_begins_with_its_number():
    assert TextLines(2).format(record("Two\nlines.")) == (
        "2026-03-01 09:00:00Z INFO    [2] Two\n[2] lines."
    )
    assert msgspec.json.decode(JsonLines(2).format(record("x")))["process"] == 2


def test_json_carries_the_extra_fields():
    event = msgspec.json.decode(
        JsonLines().format(record("Job %d began.", 7, job_id="7", attempt=2))
    )
    assert event == {
        "at": "2026-03-01T09:00:00.250000Z", "level": "info", "logger": "tidemill.worker",
        "message": "Job 7 began.", "job_id": "7", "attempt": 2,
    }  # fmt: skip


def test_json_writes_what_it_does_not_know_as_text():
    event = msgspec.json.decode(JsonLines().format(record("x", thing=frozenset, where=sys)))
    assert event["thing"] == "<class 'frozenset'>"


@pytest.mark.parametrize("lines", [TextLines(), JsonLines()])
def test_an_error_brings_its_traceback_and_no_control_characters(lines):
    try:
        raise ValueError("bad \x1b[31m text")
    except ValueError:
        made = lines.format(record("It failed.", error=sys.exc_info()))
    assert "Traceback (most recent call last)" in made
    assert "\x1b" not in made


def test_json_is_one_line():
    assert "\n" not in JsonLines().format(record("two\nlines"))


@pytest.fixture
def loggers():
    """The root's logger and ours, put back as they were."""
    kept = [
        (each, each.level, each.handlers[:]) for each in map(logging.getLogger, ("", "tidemill"))
    ]
    yield
    for logger, level, handlers in kept:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.usefixtures("loggers")
def test_debugging_is_for_our_own_loggers_only():
    write_log("debug", as_json=False)
    assert logging.getLogger("tidemill.worker").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("asyncio").isEnabledFor(logging.DEBUG)
    assert logging.getLogger("shop").isEnabledFor(logging.INFO)
    write_log("error", as_json=False)
    assert not logging.getLogger("tidemill.worker").isEnabledFor(logging.WARNING)
    assert not logging.getLogger("shop").isEnabledFor(logging.WARNING)
