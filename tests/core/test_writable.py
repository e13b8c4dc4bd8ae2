"""Since when a process knows that the database can be written (clause C10)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.writable import Shared, Writable, after_look

START = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=60)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def looks(*seconds: float) -> Writable:
    writable = Writable()
    for each in seconds:
        writable.looked(each, at(each))
    return writable


def test_who_never_looked_knows_nothing() -> None:
    assert Writable().since(7, at(7), LEASE) == at(7)


def test_the_first_look_is_where_knowledge_begins() -> None:
    assert looks(5).since(5, at(5), LEASE) == at(5)
    assert looks(5, 25, 45, 65).since(65, at(65), LEASE) == at(5)


def test_a_gap_of_more_than_half_a_lease_ends_what_was_known() -> None:
    assert looks(0, 20, 50, 70).since(70, at(70), LEASE) == at(0)
    assert looks(0, 20, 50.1, 70).since(70, at(70), LEASE) == at(50.1)


def test_a_gap_that_lasts_until_now_counts_too() -> None:
    assert looks(0, 20).since(50, at(50), LEASE) == at(0)
    assert looks(0, 20).since(50.1, at(50.1), LEASE) == at(50.1)


def test_a_shorter_lease_is_asked_of_the_same_looks_more_strictly() -> None:
    found = looks(0, 10, 11, 12, 13)
    assert found.since(13, at(13), LEASE) == at(0)
    assert found.since(13, at(13), timedelta(seconds=3)) == at(10)
    assert found.since(13, at(13), timedelta(seconds=1)) == at(13)


def together(*seconds: float) -> Shared:
    shared = None
    for each in seconds:
        shared = after_look(shared, at(each))
    assert shared is not None
    return shared


def test_looks_of_anybody_that_are_close_together_vouch_for_the_time_between() -> None:
    assert together(0).vouches_since(at(0), LEASE) == at(0)
    assert together(0, 1.5, 3, 4).vouches_since(at(5.5), LEASE) == at(0)


def test_a_longer_time_without_a_look_of_anybody_vouches_for_nothing_before_its_end() -> None:
    assert together(0, 1, 2.6, 3).vouches_since(at(3), LEASE) == at(2.6)
    assert together(0, 1).vouches_since(at(2.6), LEASE) == at(2.6)


def test_a_clock_that_stepped_back_vouches_for_nothing_before_its_step() -> None:
    assert together(0, 1, 0.5).vouches_since(at(1), LEASE) == at(0.5)
    assert together(0, 1).vouches_since(at(0.9), LEASE) == at(0.9)


def test_looks_of_others_vouch_for_no_lease_that_a_block_between_them_could_have_cost() -> None:
    shared = together(0, 1, 2)
    assert shared.vouches_since(at(2), timedelta(seconds=3)) == at(0)
    assert shared.vouches_since(at(2), timedelta(seconds=2.9)) == at(2)


@given(
    st.lists(st.floats(0.01, 50), min_size=1, max_size=300),
    st.floats(1, 200),
)
def test_it_says_what_the_whole_list_of_looks_would_say_or_something_later(gaps, lease) -> None:
    writable, now = Writable(), 0.0
    writable.looked(now, at(now))
    expected = now
    for gap in gaps:
        now += gap
        writable.looked(now, at(now))
        if gap > lease / 2:
            expected = now
    found = writable.since(now, at(now), timedelta(seconds=lease))
    assert found >= at(expected) - timedelta(microseconds=1)
    assert len(writable._gaps) <= 64


@given(st.lists(st.floats(0.3, 50), min_size=1, max_size=30), st.floats(1, 200))
def test_few_gaps_are_all_known_exactly(gaps, lease) -> None:
    writable, now, expected = Writable(), 0.0, 0.0
    writable.looked(now, at(now))
    for gap in gaps:
        before, now = now, now + gap
        writable.looked(now, at(now))
        if now - before > timedelta(seconds=lease).total_seconds() / 2:
            expected = now
    assert writable.since(now, at(now), timedelta(seconds=lease)) == at(expected)
