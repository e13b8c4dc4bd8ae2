"""Reading a row that something else may have changed: what cannot be read is noted, never raised.

A database lets anyone with a password write into a row, and some let them write any type. Whoever
reads a row decides what its faults mean: a claim quarantines the job, a list shows the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from tidemill.sql.codes import HELD_OF, STATE_OF, UNKNOWN_STATE, VERDICT_OF
from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.program import Row
from tidemill.sql.progress import read_progress
from tidemill.sql.retry import decode_retry
from tidemill.values.jobs import PRIORITY_RANGE
from tidemill.values.notes import JobProgress
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import DEFAULT_RETRY, Retry
from tidemill.values.states import Held, JobState

T = TypeVar("T")

COUNTS: Final = range((1 << 62) + 1)
"""The counters that can be read: any of them can be raised by one and still be a 64-bit number."""
NOBODY: Final = UUID(int=0)
"""What stands for an id that cannot be read: no client makes it."""

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN: Final = 80


class Reading:
    """One row, read column by column.

    A column that cannot be read is noted in `faults`, in order, and something plain stands for it:
    the stored value as Python spells it where text is wanted, else nothing, zero or the default.
    """

    __slots__ = ("_dialect", "_row", "faults")

    def __init__(self, dialect: Dialect, row: Row) -> None:
        self._dialect = dialect
        self._row = row
        self.faults: list[str] = []

    def text(self, column: str) -> str:
        stored = self._row[column]
        if type(stored) is str:
            return stored
        self.faults.append(column)
        return shown(stored)

    def text_or_none(self, column: str) -> str | None:
        return None if self._row[column] is None else self.text(column)

    def count(self, column: str) -> int:
        return self.whole(column, COUNTS)

    def priority(self, column: str) -> int:
        return self.whole(column, PRIORITY_RANGE)

    def whole(self, column: str, among: range) -> int:
        stored = self._row[column]
        if type(stored) is int and stored in among:
            return stored
        self.faults.append(column)
        return 0

    def blob(self, column: str) -> bytes:
        """Bytes; text that somebody typed in their place is as good."""
        stored = self._row[column]
        if type(stored) is bytes:
            return stored
        return self._read(column, str.encode, shown(stored).encode())

    def blob_or_none(self, column: str) -> bytes | None:
        return None if self._row[column] is None else self.blob(column)

    def instant(self, column: str) -> datetime:
        return self._read(column, self._dialect.instant, _NEVER)

    def instant_or_none(self, column: str) -> datetime | None:
        return None if self._row[column] is None else self.instant(column)

    def duration_or_none(self, column: str) -> timedelta | None:
        if self._row[column] is None:
            return None
        return self._read(column, self._dialect.duration, None)

    def uuid(self, column: str) -> UUID:
        return self._read(column, self._dialect.uuid, NOBODY)

    def uuid_or_none(self, column: str) -> UUID | None:
        return None if self._row[column] is None else self.uuid(column)

    def state(self, column: str) -> JobState:
        return self._read(column, STATE_OF.__getitem__, UNKNOWN_STATE)

    def held_or_none(self, column: str) -> Held | None:
        if self._row[column] is None:
            return None
        return self._read(column, HELD_OF.__getitem__, None)

    def verdict(self, column: str) -> Verdict:
        return self._read(column, VERDICT_OF.__getitem__, Verdict.FAILED)

    def retry(self, column: str) -> Retry:
        stored = self._row[column]
        return DEFAULT_RETRY if stored is None else self._read(column, decode_retry, DEFAULT_RETRY)

    def progress_or_none(self, column: str) -> JobProgress | None:
        if self._row[column] is None:
            return None
        return self._read(column, read_progress, None)

    def _read(self, column: str, read: Callable[[Any], T], otherwise: T) -> T:
        try:
            return read(self._row[column])
        except Exception:  # noqa: BLE001 - whatever is wrong with it, it cannot be read
            self.faults.append(column)
            return otherwise


def shown(stored: object) -> str:
    """A stored value as Python spells it, cut to a line."""
    return f"{stored!r:.{_SHOWN}}"


def id_of(dialect: Dialect, row: Row) -> str:
    """How a log names a job by its row: its id, or what is stored in the id's place."""
    read = Reading(dialect, row)
    found = read.uuid("id")
    return shown(row["id"]) if read.faults else str(found)
