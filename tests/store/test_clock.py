"""Virtual time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tidemill.store.memory import VirtualClock

START = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_it_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(START)
    assert clock() == clock() == START
    assert clock.advance(SECOND) == clock() == START + SECOND
    assert clock.set(START + 9 * SECOND) == clock() == START + 9 * SECOND


def test_it_may_step_back() -> None:
    clock = VirtualClock(START)
    assert clock.advance(-SECOND) == START - SECOND
    assert clock.set(START - 5 * SECOND) == clock() == START - 5 * SECOND


def test_it_tells_utc_whatever_zone_it_was_given() -> None:
    east = timezone(timedelta(hours=5))
    clock = VirtualClock(START.astimezone(east))
    assert (clock(), clock().utcoffset()) == (START, timedelta(0))
    assert clock.set(START.astimezone(east)).utcoffset() == timedelta(0)


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        VirtualClock(datetime(2026, 1, 1))  # noqa: DTZ001 - what a test's author forgets
    with pytest.raises(ValueError, match="aware"):
        VirtualClock().set(datetime(2026, 1, 1))  # noqa: DTZ001 - what a test's author forgets


def test_no_advance_is_lost_when_threads_move_it() -> None:
    clock = VirtualClock(START)

    def run() -> None:
        for _ in range(500):
            clock.advance(SECOND)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run) for _ in range(4)]:
            done.result()
    assert clock() == START + 2_000 * SECOND
