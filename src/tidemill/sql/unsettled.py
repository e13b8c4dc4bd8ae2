"""The mark on a completed row: what follows from it and is not done yet, as JSON text (D8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidemill.errors import TidemillError
from tidemill.values.jobs import NewJob
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The tags and the jobs that an attempt left."""

    tags: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()


def _plain(value: object) -> object:
    """A value of a subclass, of a user's or of a library's, as one of the class itself."""
    match value:
        case str():
            return str.__str__(value)
        case bytes():
            return bytes(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case timedelta():
            return timedelta(value.days, value.seconds, value.microseconds)
        case UUID():
            return UUID(int=value.int)
        case _:
            message = f"{type(value).__qualname__} cannot be written into a completion's mark"
            raise TypeError(message)


_TAGS: Final = msgspec.json.Decoder(frozenset[Tag])
_ALL: Final = msgspec.json.Decoder(Unsettled)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic", enc_hook=_plain)


def write_mark(left: Unsettled) -> str:
    """The mark: an array of tags, or an object where there are jobs too."""
    if not left.children:
        return _ENCODER.encode(left.tags).decode()
    children = tuple(_in_utc(child) for child in left.children)
    return _ENCODER.encode(replace(left, children=children)).decode()


def read_mark(stored: str) -> Unsettled:
    """What a mark says.

    Raises:
        ValueError, TypeError: it does not read.
    """
    try:
        if stored.startswith("["):
            return Unsettled(_TAGS.decode(stored))
        return _ALL.decode(stored)
    except (msgspec.MsgspecError, TidemillError, AttributeError, RecursionError) as error:
        message = f"what follows from the completion cannot be read: {error}"
        raise ValueError(message) from error


def _in_utc(job: NewJob) -> NewJob:
    """Its instants in UTC: JSON has no words for an offset with seconds, as old zones have."""
    return replace(job, due_at=_utc(job.due_at), not_after=_utc(job.not_after))


def _utc(instant: datetime | None) -> datetime | None:
    if instant is None:
        return None
    moved = instant.astimezone(UTC)
    return datetime.combine(moved.date(), moved.time(), UTC)
