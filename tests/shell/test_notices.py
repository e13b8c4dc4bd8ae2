"""One event per line, with its fields beside it."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tidemill.core.commands import NoticeStale
from tidemill.shell.identity import new_id
from tidemill.shell.notices import log_ending, log_notice
from tidemill.values.endings import (
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
        (Stopped(), "INFO", "was cancelled"),
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
