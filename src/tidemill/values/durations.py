"""Durations as users may write them: a timedelta, or text with its unit."""

from __future__ import annotations

import re
from datetime import timedelta

from tidemill.errors import ConfigurationError

Duration = timedelta | str
"""A `timedelta`, or text such as `"30s"`, `"1h30m"` or `"250ms"`."""

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(ms|s|m|h|d|w) *")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def duration(value: object, what: str) -> timedelta:
    """The timedelta that a `Duration` stands for; `what` names the setting in errors.

    Text is one or more numbers, each with a unit: ms, s, m (minutes), h, d or w. A number without
    a unit is refused, because nobody can tell seconds from minutes.

    Raises:
        ConfigurationError: it is not a duration, or a longer one than `timedelta` can hold.
    """
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        message = (
            f"{what}={value!r} is not a duration; give a timedelta, or text with its unit "
            'such as "30s", "5m" or "1h30m".'
        )
        raise ConfigurationError(message)
    try:
        parts = [float(number) * _UNITS[unit] for number, unit in _PART.findall(value)]
        return sum(parts, timedelta(0))
    except OverflowError as error:
        message = f"{what}={value!r} is longer than the longest duration, {timedelta.max}."
        raise ConfigurationError(message) from error
