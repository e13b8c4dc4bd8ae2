"""Instants that a duration leads to, what is due, and what has expired."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.instants import (
    LATEST,
    after,
    due_instant,
    expiry,
    first_state,
    has_expired,
    microseconds,
    microseconds_since_1970,
)
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import NewJob
from tidemill.values.states import JobState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
EAST = timezone(timedelta(hours=5, minutes=45))


def job(**wish: object) -> NewJob:
    return NewJob(**{"id": JobId(UUID(int=1)), "wire_name": "mill.grind"} | wish)


def test_a_wait_leads_to_its_instant() -> None:
    assert after(NOW, timedelta(microseconds=1)) == NOW.replace(microsecond=1)
    assert after(NOW, timedelta(days=-1)) == datetime(2025, 12, 31, tzinfo=UTC)


@given(st.timedeltas(min_value=timedelta(days=-365_000)))
def test_no_wait_is_an_error_and_none_leads_past_the_latest_instant(wait) -> None:
    assert after(NOW, wait) <= LATEST


def test_a_longer_wait_than_the_calendar_ends_at_the_latest_instant() -> None:
    assert after(NOW, timedelta.max) == LATEST
    assert after(LATEST, timedelta(0)) == LATEST


def test_a_job_is_due_now_after_its_delay_or_at_its_instant_in_utc() -> None:
    assert due_instant(job(), NOW) == NOW
    assert due_instant(job(delay=MICROSECOND), NOW) == NOW + MICROSECOND
    due = due_instant(job(due_at=NOW.astimezone(EAST)), NOW)
    assert (due, due.tzinfo) == (NOW, UTC)


def test_a_job_begins_ready_if_it_is_due_at_this_very_instant() -> None:
    assert first_state(NOW, NOW) is JobState.READY
    assert first_state(NOW + MICROSECOND, NOW) is JobState.SCHEDULED


def test_a_job_expires_at_its_instant_after_its_duration_or_never() -> None:
    assert expiry(job(), NOW) is None
    assert expiry(job(expires=MICROSECOND), NOW) == NOW + MICROSECOND
    until = expiry(job(not_after=NOW.astimezone(EAST)), NOW)
    assert (until, until and until.tzinfo) == (NOW, UTC)


@pytest.mark.parametrize(
    ("attempt", "not_after", "expired"),
    [(0, None, False), (0, NOW, True), (0, NOW + MICROSECOND, False), (1, NOW, False)],
)
def test_a_job_that_never_started_has_expired_at_its_very_instant(
    attempt, not_after, expired
) -> None:
    assert has_expired(Attempt(attempt), not_after, NOW) is expired


def test_durations_and_instants_are_whole_microseconds_in_every_zone() -> None:
    assert microseconds(timedelta(days=1, microseconds=-1)) == 86_399_999_999
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert microseconds_since_1970(epoch - MICROSECOND) == -1
    assert microseconds_since_1970(NOW) == microseconds_since_1970(NOW.astimezone(EAST))


def test_a_wait_that_leads_before_the_calendar_is_never_an_error() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert after(now, timedelta.min) < now
