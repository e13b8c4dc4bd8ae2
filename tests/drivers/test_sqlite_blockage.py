"""Waiting for the write lock: who began to wait, and when the wait is over (clause C10)."""

from datetime import UTC, datetime, timedelta

import pytest

from tidemill.drivers.sqlite_blockage import Blockage, elapsed

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)


def test_a_wait_of_a_second_is_long_and_a_shorter_one_is_not():
    assert not Blockage().granted(10.0, 10.9)
    assert Blockage().granted(10.0, 11.0)


def test_a_wait_begun_by_one_connection_is_ended_by_the_next():
    blockage = Blockage()
    blockage.gave_up(10.0)
    blockage.gave_up(12.0)
    assert blockage.granted(15.0, 15.1)


def test_a_long_wait_is_not_over_before_it_was_noted():
    blockage = Blockage()
    assert blockage.granted(10.0, 15.0)
    assert blockage.granted(16.0, 16.0)
    blockage.noted()
    assert not blockage.granted(17.0, 17.0)


def test_a_short_wait_leaves_nothing_to_remember():
    blockage = Blockage()
    assert not blockage.granted(10.0, 10.5)
    assert not blockage.granted(11.0, 11.4)


def test_a_time_when_the_lock_was_had_and_nothing_could_be_written_is_a_long_wait():
    blockage = Blockage()
    for at in (10.0, 10.4, 10.8):
        assert not blockage.granted(at, at)
        blockage.failed(at)
    assert blockage.granted(15.0, 15.0) == 5.0
    blockage.wrote(15.0, NOON)
    blockage.noted()
    assert not blockage.granted(16.0, 16.0)


def test_to_have_written_is_to_know_that_it_can_be_done_and_to_have_the_lock_is_not():
    blockage = Blockage()
    later = NOON + LEASE
    assert blockage.writable_since(0.0, NOON, LEASE) == NOON
    blockage.granted(0.0, 0.0)
    assert blockage.writable_since(20.0, later, LEASE) == later
    blockage.wrote(0.0, NOON)
    assert blockage.writable_since(20.0, later, LEASE) == NOON
    blockage.forget()
    assert blockage.writable_since(20.0, later, LEASE) == later


def test_a_process_leaves_its_looks_for_others_now_and_then():
    blockage = Blockage()
    assert [blockage.shares(at) for at in (0.0, 0.2, 0.3, 0.4, 0.7)] == [
        True, False, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("_", range(3))
def test_the_own_clock_only_climbs(_):
    first = elapsed()
    assert elapsed() >= first
