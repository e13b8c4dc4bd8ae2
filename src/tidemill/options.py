"""What a job is enqueued with, beside its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemill.errors import ConfigurationError
from tidemill.values.durations import Duration, duration
from tidemill.values.ids import JobId
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

TagLike = str | tuple[str, str]
"""A label, or a key with its value."""


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


def tags_of(tags: Iterable[TagLike]) -> frozenset[Tag]:
    """Labels and (key, value) pairs as tags. Raises ConfigurationError."""
    if isinstance(tags, str):
        message = f"tags={tags!r} is one text; give a list of labels and (key, value) pairs."
        raise ConfigurationError(message)
    return frozenset(Tag(tag) if isinstance(tag, str) else Tag(*tag) for tag in tags)
