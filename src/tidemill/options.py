"""What a job is enqueued with, beside its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from tidemill.errors import ConfigurationError
from tidemill.values.durations import Duration, duration
from tidemill.values.ids import JobId
from tidemill.values.jobs import PRIORITY_RANGE
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

TagLike = str | tuple[str, str]
"""A label, or a key with its value."""

TagsLike = Iterable[TagLike] | Mapping[str, str]
"""Labels and (key, value) pairs, or a mapping of keys to values."""

_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What `with_options` has set; None is what the declaration says."""

    queue: str | None = None
    priority: int | None = None
    delay: timedelta | None = None
    due_at: datetime | None = None
    not_after: datetime | None = None
    expires: timedelta | None = None
    idempotency_key: str | None = None
    tenant: str | None = None
    tags: frozenset[Tag] = frozenset()
    timeout: timedelta | None = None
    retry: Retry | None = None
    parents: tuple[JobId, ...] = ()


def due_changes(delay: Duration | None, at: datetime | None) -> dict[str, Any]:
    """The options that `delay` or `at` set: each replaces the other. Raises ConfigurationError."""
    if delay is not None and at is not None:
        message = f"A job is given either delay={delay!r} or at={at!r}, not both."
        raise ConfigurationError(message)
    if delay is not None:
        return {"delay": duration(delay, "delay"), "due_at": None}
    return {} if at is None else {"delay": None, "due_at": at}


def expiry_changes(expires: Duration | datetime | None) -> dict[str, Any]:
    """The options that `expires` sets, an instant or a duration. Raises ConfigurationError."""
    if expires is None:
        return {}
    if isinstance(expires, datetime):
        return {"expires": None, "not_after": expires}
    return {"expires": duration(expires, "expires"), "not_after": None}


def tags_of(tags: TagsLike) -> frozenset[Tag]:
    """Labels and (key, value) pairs as tags. Raises ConfigurationError."""
    if isinstance(tags, str):
        message = f"tags={tags!r} is one text; give a list of labels and (key, value) pairs."
        raise ConfigurationError(message)
    if isinstance(tags, Mapping):
        pairs = cast("Mapping[object, object]", tags)
        return frozenset(_tag(pair) for pair in pairs.items())
    return frozenset(_tag(tag) for tag in tags)


def require_whole(priority: object) -> None:
    """Refuse a priority that is no whole number.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(priority, int):
        message = (
            f"priority={priority!r} is of type {type(priority).__name__}; give a whole number, "
            f"{PRIORITY_RANGE.start} to {PRIORITY_RANGE.stop - 1}; higher is claimed first."
        )
        raise ConfigurationError(message)


def _tag(tag: object) -> Tag:
    parts = tuple(cast("Iterable[object]", tag)) if isinstance(tag, (tuple, list)) else (tag,)
    texts = [part for part in parts if isinstance(part, str)]
    if not 1 <= len(parts) <= _PAIR or len(texts) < len(parts):
        message = f"{tag!r} is no tag: a tag is a label or a (key, value) pair, all of them text."
        raise ConfigurationError(message)
    return Tag(*texts)
