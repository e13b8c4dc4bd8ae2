"""Instants that a duration leads to."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.instants import LATEST, after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_wait_leads_to_its_instant() -> None:
    assert after(NOW, timedelta(microseconds=1)) == NOW.replace(microsecond=1)
    assert after(NOW, timedelta(days=-1)) == datetime(2025, 12, 31, tzinfo=UTC)


@given(st.timedeltas(min_value=timedelta(days=-365_000)))
def test_no_wait_is_an_error_and_none_leads_past_the_latest_instant(wait) -> None:
    assert after(NOW, wait) <= LATEST


def test_a_longer_wait_than_the_calendar_ends_at_the_latest_instant() -> None:
    assert after(NOW, timedelta.max) == LATEST
    assert after(LATEST, timedelta(0)) == LATEST
