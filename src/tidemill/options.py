"""What a job is enqueued with, beside its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

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


_TEXTS: Final = ("queue", "idempotency_key", "tenant")


def require_kinds(options: Mapping[str, object]) -> None:
    """Refuse options of another type than is wanted; None says that one was not given.

    Raises:
        ConfigurationError: one is.
    """
    for name in _TEXTS:
        _require(name, options[name], str, "text")
    _require("at", options["at"], datetime, "an aware datetime")
    _require("retry", options["retry"], Retry, "a Retry, such as Retry.fixed('30s')")
    bounds = f"{PRIORITY_RANGE.start} to {PRIORITY_RANGE.stop - 1}"
    wanted = f"a whole number, {bounds}; higher is claimed first"
    _require("priority", options["priority"], int, wanted)


def _require(name: str, value: object, kind: type, wanted: str) -> None:
    if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
        return
    message = f"{name}={value!r:.80} is of type {type(value).__name__}; give {wanted}."
    raise ConfigurationError(message)


def parents_of(after: object) -> tuple[JobId, ...]:
    """The jobs that references stand for. Raises ConfigurationError."""
    refs = cast("Iterable[object]", after) if isinstance(after, Iterable) else (after,)
    ids = tuple(getattr(ref, "id", None) for ref in refs)
    if isinstance(after, str) or not all(isinstance(each, UUID) for each in ids):
        message = f"after={after!r:.80} cannot work; give a list of references to jobs."
        raise ConfigurationError(message)
    return cast("tuple[JobId, ...]", ids)


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


def tags_of(tags: TagsLike | object) -> frozenset[Tag]:
    """Labels and (key, value) pairs as tags. Raises ConfigurationError."""
    if isinstance(tags, str):
        message = f"tags={tags!r} is one text; give a list of labels and (key, value) pairs."
        raise ConfigurationError(message)
    if isinstance(tags, Mapping):
        pairs = cast("Mapping[object, object]", tags)
        return frozenset(_tag(pair) for pair in pairs.items())
    if not isinstance(tags, Iterable):
        message = f"tags={tags!r:.80} is no list; give labels and (key, value) pairs."
        raise ConfigurationError(message)
    return frozenset(_tag(tag) for tag in cast("Iterable[object]", tags))


def _tag(tag: object) -> Tag:
    parts = tuple(cast("Iterable[object]", tag)) if isinstance(tag, (tuple, list)) else (tag,)
    texts = [part for part in parts if isinstance(part, str)]
    if not 1 <= len(parts) <= _PAIR or len(texts) < len(parts):
        message = f"{tag!r} is no tag: a tag is a label or a (key, value) pair, all of them text."
        raise ConfigurationError(message)
    return Tag(*texts)
