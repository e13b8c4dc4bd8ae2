"""What a worker logs when it starts and when it is asked to end."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tidemill.shell.notices import log_drain, log_hurry, log_start

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, "tidemill.worker")


def test_the_line_of_a_worker_that_starts_names_its_queues_its_slots_and_its_jobs(caplog):
    log_start(("mail", "default"), 1, frozenset({"mail.welcome", "mail.bye"}))
    (line,) = caplog.messages
    assert line == ("Serving mail, default (1 slot); jobs: mail.bye, mail.welcome. Ctrl-C ends it.")


def test_the_line_of_a_worker_that_starts_is_short_and_its_fields_hold_every_name(caplog):
    names = frozenset(f"orders.job-{number:02}" for number in range(40))
    log_start(tuple(f"queue-{number:02}" for number in range(9)), 1_000, names)
    (record,) = caplog.records
    assert "; jobs: orders.job-00, orders.job-01 and 38 more." in record.getMessage()
    assert "Serving queue-00, queue-01 and 7 more (1,000 slots);" in record.getMessage()
    assert len(record.getMessage()) <= 120
    assert record.wire_names == sorted(names)


@pytest.mark.parametrize(
    ("running", "says"),
    [
        (0, "Ending: nothing more is claimed; nothing runs."),
        (1, "Ending: nothing more is claimed; 1 running handler may finish within 1 s."),
        (2, "Ending: nothing more is claimed; 2 running handlers may finish within 1 s."),
    ],
)
def test_the_line_of_a_worker_that_ends_says_what_still_runs(caplog, running, says):
    log_drain(running, SECOND, MINUTE)
    assert caplog.messages[0].startswith(says)


def test_the_line_of_a_worker_that_ends_says_why_if_that_was_not_by_a_signal(caplog):
    log_drain(0, SECOND, MINUTE, "because the supervisor is gone")
    assert caplog.messages[0].startswith("Ending because the supervisor is gone: ")


def test_hurrying_says_what_is_asked_to_stop_and_never_that_nothing_is(caplog):
    for running in (0, 1, 2):
        log_hurry(running, SECOND)
    none, one, two = caplog.messages
    assert none == "Hurrying the end, in which nothing runs any more."
    assert one == "Hurrying: 1 running handler is asked to stop, for 1 s at most."
    assert two == "Hurrying: 2 running handlers are asked to stop, for 1 s at most."
