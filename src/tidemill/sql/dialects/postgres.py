"""PostgreSQL: its own types for ids, instants and durations; codes for words; lists are arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from tidemill.errors import ConfigurationError
from tidemill.sql.codes import HELD_CODES, STATE_CODES, VERDICT_CODES, state_fragments
from tidemill.sql.reading import COUNTS
from tidemill.values.outcomes import Verdict
from tidemill.values.states import Held, JobState

DEFAULT_SCHEMA: Final = "tidemill"
TABLES: Final = ("jobs", "workers", "attempts", "log_lines", "tags", "audit", "queues", "meta")

_IDENTIFIER = re.compile(r"^[a-z_][a-z0-9_]{0,47}$")

# What a claim may start without asking the rules: never lapsed since its last requeue, so no
# poison; not expired; of a name that the worker knows; and with an attempt that can be counted on.
_STARTABLE = (
    f"(attempt BETWEEN 0 AND {COUNTS[-1]} AND lapses = lapses_base"
    " AND (not_after IS NULL OR attempt > 0 OR not_after > :now)"
    " AND (:names::text[] IS NULL OR wire_name = ANY(:names::text[])))"
)


def _same(value: Any) -> Any:
    return value


_ENCODERS: dict[type, Callable[[Any], object]] = {
    type(None): _same,
    int: _same,
    str: _same,
    bytes: _same,
    float: _same,
    bool: _same,
    UUID: _same,
    datetime: _same,
    timedelta: _same,
    JobState: STATE_CODES.__getitem__,
    Verdict: VERDICT_CODES.__getitem__,
    Held: HELD_CODES.__getitem__,
}


_AS_THEY_ARE = frozenset(kind for kind, encoder in _ENCODERS.items() if encoder is _same)


def _encoder_of(value: object) -> Callable[[Any], object]:
    """The encoder of a subclass, such as a driver's own UUID; a type nobody knows raises."""
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind) and not isinstance(value, Enum):
            return encoder
    message = f"No encoding for {type(value).__qualname__} in the PostgreSQL dialect."
    raise TypeError(message)


def checked_schema(schema: str) -> str:
    """A schema's name that needs no quoting anywhere.

    Raises:
        ConfigurationError: it has other than a-z, 0-9 and _, or more than 48 characters.
    """
    if _IDENTIFIER.match(schema) is None:
        message = (
            f"{schema!r} is no schema for Tidemill: use a-z, 0-9 and _, not a digit first, "
            "at most 48 characters."
        )
        raise ConfigurationError(message)
    return schema


class PostgresDialect:
    """The dialect of PostgreSQL 14 and later.

    Args:
        schema: where the tables are.
    """

    def __init__(self, schema: str = DEFAULT_SCHEMA) -> None:
        self.name: Final = "postgres"
        self.arrays: Final = True
        self.schema: Final = checked_schema(schema)
        self._encoders: dict[type, Callable[[Any], object]] = {
            **_ENCODERS,
            tuple: self._array,
        }
        self.fragments: Mapping[str, str] = {
            **{table: f'"{schema}".{table}' for table in TABLES},
            **state_fragments(),
            "schema": schema,
            "startable": _STARTABLE,
            "now": "coalesce(:clock::timestamptz, clock_timestamp())",
            "counted": "NOT stale",
            "each_queue": "jsonb_array_elements_text(:queues::jsonb) AS each (value)",
        }

    def encode(self, value: object) -> object:
        encoder = self._encoders.get(type(value))
        if encoder is None:
            encoder = self._encoders[type(value)] = _encoder_of(value)
        return encoder(value)

    def _array(self, values: tuple[object, ...]) -> list[object]:
        if _AS_THEY_ARE.issuperset(map(type, values)):
            return list(values)
        return [self.encode(value) for value in values]

    def instant(self, stored: Any) -> datetime:
        """Drivers answer in the session's zone or in UTC, or in text, where a user has it so."""
        instant: datetime = (
            stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
        )
        if instant.tzinfo is None:  # asyncpg's infinity
            return instant.replace(tzinfo=UTC)
        return instant if instant.tzinfo is UTC else instant.astimezone(UTC)

    def duration(self, stored: Any) -> timedelta:
        duration: timedelta = stored
        return duration

    def uuid(self, stored: Any) -> UUID:
        """A plain one: asyncpg has a class of its own, and a user may have it read as text."""
        if type(stored) is UUID:
            return stored
        return UUID(int=stored.int) if isinstance(stored, UUID) else UUID(str(stored))
