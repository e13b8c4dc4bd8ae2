"""SQLite: ids are 16 bytes, instants and durations are integer microseconds, words are codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from tidemill.sql.codes import HELD_CODES, STATE_CODES, VERDICT_CODES, state_fragments
from tidemill.values.outcomes import Verdict
from tidemill.values.states import Held, JobState

PREFIX = "tidemill_"
TABLES = ("jobs", "workers", "attempts", "log_lines", "tags", "audit", "queues", "meta")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return duration // _MICROSECOND


def _same(value: Any) -> Any:
    return value


def _uuid(value: UUID) -> bytes:
    return value.bytes


def _instant(value: datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


_ENCODERS: dict[type, Callable[[Any], object]] = {
    type(None): _same,
    int: _same,
    str: _same,
    bytes: _same,
    float: _same,
    bool: int,
    UUID: _uuid,
    datetime: _instant,
    timedelta: micros,
    JobState: STATE_CODES.__getitem__,
    Verdict: VERDICT_CODES.__getitem__,
    Held: HELD_CODES.__getitem__,
}


def _encoder_of(value: object) -> Callable[[Any], object]:
    """The encoder of a subclass, such as another driver's own UUID; a type nobody knows raises."""
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind) and not isinstance(value, Enum):
            return encoder
    message = f"No encoding for {type(value).__qualname__} in the SQLite dialect."
    raise TypeError(message)


def _fragments() -> dict[str, str]:
    return {
        **{table: PREFIX + table for table in TABLES},
        **state_fragments(),
        "now": ":clock",
        "counted": "stale = 0",
        "each_queue": "json_each(:queues) AS each",
        "calendar_end": str(_instant(datetime.max.replace(tzinfo=UTC))),
    }


@dataclass(frozen=True, slots=True)
class SqliteDialect:
    """The dialect of SQLite 3.40 and later."""

    name: str = "sqlite"
    fragments: Mapping[str, str] = field(default_factory=_fragments)
    arrays: bool = False

    def encode(self, value: object) -> object:
        encoder = _ENCODERS.get(type(value)) or _encoder_of(value)
        return encoder(value)

    def instant(self, stored: Any) -> datetime:
        return _EPOCH + timedelta(microseconds=stored)

    def duration(self, stored: Any) -> timedelta:
        return timedelta(microseconds=stored)

    def uuid(self, stored: Any) -> UUID:
        return UUID(bytes=stored)
