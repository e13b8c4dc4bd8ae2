"""What a dialect knows: its name, its fragments, and how plain values are written and read.

Programs speak plain Python values; `encode` turns each parameter into what the database keeps, and
the readers turn what a row holds back into values.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID


class Dialect(Protocol):
    """The codec and the fragments of one database."""

    @property
    def name(self) -> str:
        """The folder of its statements and migrations."""
        ...

    @property
    def fragments(self) -> Mapping[str, str]:
        """What stands for each `{{fragment}}` in a statement."""
        ...

    @property
    def arrays(self) -> bool:
        """Whether a list is one parameter, and a batch one statement over columns of values."""
        ...

    def encode(self, value: object) -> object:
        """A parameter as the database keeps it; a tuple is an array, where there are arrays."""
        ...

    def instant(self, stored: Any) -> datetime:
        """An instant, aware, in UTC."""
        ...

    def duration(self, stored: Any) -> timedelta:
        """A duration."""
        ...

    def uuid(self, stored: Any) -> UUID:
        """An id."""
        ...


def instant_or_none(dialect: Dialect, stored: Any) -> datetime | None:
    return None if stored is None else dialect.instant(stored)


def duration_or_none(dialect: Dialect, stored: Any) -> timedelta | None:
    return None if stored is None else dialect.duration(stored)
