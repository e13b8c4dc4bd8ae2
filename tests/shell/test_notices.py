"""One event per line, with its fields beside it."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from tidemill.core.commands import NoticeStale
from tidemill.core.pulse import NoticeNoAnswer
from tidemill.shell.attempt_notices import log_ending
from tidemill.shell.identity import new_id
from tidemill.shell.notices import log_notice, log_pulse_notice
from tidemill.values.endings import (
    CancelReason,
    Discarded,
    Raised,
    Returned,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Holder
from tidemill.values.outcomes import Answer, ErrorInfo, Reported
from tidemill.values.states import JobState


def test_a_stale_report_is_logged_with_both_pairs(caplog):
    caplog.set_level(logging.INFO, "tidemill.worker")
    job, old, new = JobId(new_id()), WorkerId(new_id()), WorkerId(new_id())
    holder = Holder(new, Attempt(2), JobState.SUCCEEDED)
    log_notice(NoticeStale(old, Reported(job, Attempt(1), Answer.STALE, holder=holder)))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"Rejected a stale report on job {job}: it came from worker {old}, attempt 1; the job is "
        f"succeeded, held by worker {new}, attempt 2. Nothing of the report was applied."
    )
    assert (record.job_id, record.worker, record.attempt) == (str(job), str(old), 1)
    assert (record.holder_worker, record.holder_attempt) == (str(new), 2)


def test_a_stale_report_on_a_job_that_nobody_holds_says_so(caplog):
    caplog.set_level(logging.INFO, "tidemill.worker")
    job, old = JobId(new_id()), WorkerId(new_id())
    holder = Holder(None, Attempt(3), JobState.READY)
    log_notice(NoticeStale(old, Reported(job, Attempt(1), Answer.STALE, holder=holder)))
    assert "the job is ready, held by nobody, attempt 3" in caplog.text


ERROR = ErrorInfo("builtins.ValueError", "no such card", "a long traceback")


@pytest.mark.parametrize(
    ("ending", "level", "words"),
    [
        (Raised(ERROR), "WARNING", "failed with builtins.ValueError: no such card"),
        (Unroutable("payload", ERROR), "ERROR", "cannot be run (payload): no such card"),
        (Discarded(ERROR), "INFO", "asked to be discarded: no such card"),
        (Snoozed(timedelta(seconds=5)), "DEBUG", "asked to come back after 0:00:05"),
        (
            Stopped(),
            "WARNING",
            "failed: it stopped with a cancellation that nobody had asked for",
        ),
        (Returned(), "DEBUG", "returned"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_ending_is_logged_as_loudly_as_it_matters(caplog, claimed, ending, level, words):
    caplog.set_level(logging.DEBUG, "tidemill.worker")
    job = claimed("capture")
    log_ending(job, ending)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage() == f"Attempt 1 of capture {job.id} {words}."
    assert (record.job_id, record.wire_name) == (str(job.id), "capture")


RAISED = Raised(ERROR)
OVERTIME = "failed: it did not end within its timeout of 1.5 s"
CUT_OFF = "was cut off by the shutdown; the job is given back, at no cost"
LOST = (
    "ended after its worker had lost the lease; nothing of it is reported, and the job runs "
    "elsewhere"
)
IT_RAISED = "; it raised builtins.ValueError: no such card"


@pytest.mark.parametrize(
    ("reason", "ending", "level", "words"),
    [
        (CancelReason.TIMEOUT, Stopped(), "WARNING", OVERTIME),
        (CancelReason.TIMEOUT, RAISED, "WARNING", OVERTIME + IT_RAISED),
        (CancelReason.TIMEOUT, Returned(), "DEBUG", "returned"),
        (CancelReason.SHUTDOWN, Stopped(), "INFO", CUT_OFF),
        (CancelReason.SHUTDOWN, RAISED, "INFO", CUT_OFF + IT_RAISED),
        (CancelReason.SHUTDOWN, Returned(), "DEBUG", "returned"),
        (CancelReason.LEASE_LOST, Stopped(), "INFO", LOST),
        (CancelReason.LEASE_LOST, Returned(), "INFO", LOST),
        (CancelReason.LEASE_LOST, RAISED, "INFO", LOST + IT_RAISED),
        (CancelReason.OPERATOR, Stopped(), "INFO", "was cancelled (asked by ada)"),
        (CancelReason.OPERATOR, RAISED, "WARNING", "failed with builtins.ValueError: no such card"),
    ],
)
def test_an_attempt_that_was_asked_to_stop_is_logged_by_what_that_made_of_it(
    caplog, claimed, reason, ending, *, level, words
):
    caplog.set_level(logging.DEBUG, "tidemill.worker")
    job = replace(claimed("capture"), timeout=timedelta(seconds=1.5))
    log_ending(job, ending, reason, "ada")
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage() == f"Attempt 1 of capture {job.id} {words}."


def test_a_cancel_by_nobody_known_is_logged_without_a_name(caplog, claimed):
    caplog.set_level(logging.INFO, "tidemill.worker")
    log_ending(claimed("capture"), Stopped(), CancelReason.OPERATOR)
    assert caplog.records[0].getMessage().endswith(" was cancelled.")


def test_an_error_of_several_lines_is_logged_by_its_first(caplog, claimed):
    log_ending(claimed("capture"), Raised(ErrorInfo("sql.Error", "\nno such row\n  at 3\n")))
    log_pulse_notice(NoticeNoAnswer("cut off.\nIs the server up?"))
    first, second = (record.getMessage() for record in caplog.records)
    assert first.endswith(" failed with sql.Error: no such row ….")
    assert second == "A heartbeat had no answer; trying again until it has (cut off. …)."


def test_an_error_without_words_is_logged_by_its_kind(caplog, claimed):
    log_ending(claimed("capture"), Raised(ErrorInfo("builtins.KeyError", "")))
    assert caplog.records[0].getMessage().endswith(" failed with builtins.KeyError.")
