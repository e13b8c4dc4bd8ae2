"""PostgreSQL's instants: microseconds since 2000, some of them beyond Python's calendar.

It knows an infinity each way, years after 9999 and years before Christ. No program writes them, but
whoever has a password can, and one such row must not keep the others from being read: it reads as
the calendar's end.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def instant_of(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _LAST if microseconds > 0 else _FIRST


def instant_of_tuple(stored: tuple[int]) -> datetime:
    """As asyncpg hands it over."""
    return instant_of(stored[0])


def tuple_of(instant: datetime) -> tuple[int]:
    """As asyncpg takes it."""
    return ((instant - _EPOCH) // _MICROSECOND,)
