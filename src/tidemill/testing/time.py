"""Instants and spans as tests write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidemill.errors import ConfigurationError
from tidemill.values.durations import Duration, duration

START = datetime(2026, 1, 1, tzinfo=UTC)

_NOTHING = timedelta(0)


def instant(value: datetime | str) -> datetime:
    """The aware instant that `value` stands for, in UTC.

    Raises:
        ConfigurationError: it is no ISO 8601 text, or has no offset.
    """
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        message = f"start={value!r} is not an instant; write it like '2026-03-01T00:00Z'."
        raise ConfigurationError(message) from error
    if found.utcoffset() is None:
        message = f"start={value!r} has no time zone; write it like '2026-03-01T00:00Z'."
        raise ConfigurationError(message)
    return found.astimezone(UTC)


def span(by: Duration | None, **parts: float) -> timedelta:
    """The span that `by` and the named parts (`days=7`, `hours=1`) add up to.

    Raises:
        ConfigurationError: it is no duration, or negative.
    """
    given = _NOTHING if by is None else duration(by, "by")
    total = given + timedelta(**parts)
    if total < _NOTHING:
        message = f"Virtual time cannot be moved back: the span is {total}."
        raise ConfigurationError(message)
    return total
