"""Durations as users may write them, and what handlers may raise with them."""

from datetime import timedelta
from typing import Any

import pytest

from tidemill.errors import ConfigurationError, TidemillError
from tidemill.values.durations import duration
from tidemill.values.wishes import Discard, RetryAfter, Snooze


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("30s", timedelta(seconds=30)),
        ("250ms", timedelta(milliseconds=250)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1h 30m", timedelta(hours=1, minutes=30)),
        ("0.5d", timedelta(hours=12)),
        ("2w", timedelta(weeks=2)),
        ("0s", timedelta(0)),
        (timedelta(seconds=3), timedelta(seconds=3)),
    ],
)
def test_a_duration_is_a_timedelta_or_text_with_its_unit(text: Any, meant: timedelta) -> None:
    assert duration(text, "delay") == meant


@pytest.mark.parametrize(
    "value", ["", "30", "s", "30 parsecs", "-5s", "1h30", 30, 1.5, None, True], ids=repr
)
def test_anything_else_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"delay={value!r} is not a duration"):
        duration(value, "delay")


def test_a_duration_beyond_the_longest_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="longest"):
        duration("999999999999w", "delay")


def test_wishes_carry_their_delay_and_reason() -> None:
    assert (RetryAfter("30s", "busy").delay, str(RetryAfter("30s", "busy"))) == (
        timedelta(seconds=30),
        "busy",
    )
    assert Snooze(timedelta(hours=1)).delay == timedelta(hours=1)
    assert (Discard("gone").reason, str(Discard())) == ("gone", "discarded by its handler")


def test_a_wish_for_the_past_is_a_wish_for_at_once() -> None:
    assert RetryAfter(timedelta(seconds=-1)).delay == timedelta(0)
    assert Snooze(timedelta(seconds=-1)).delay == timedelta(0)


def test_wishes_are_not_swallowed_as_errors_of_the_library() -> None:
    assert not any(issubclass(wish, TidemillError) for wish in (RetryAfter, Snooze, Discard))
