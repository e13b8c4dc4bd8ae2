"""What a store may be asked to hold: checked alike by every store, before anything is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Final
from uuid import UUID

from tidemill.errors import BoundExceeded, InvalidValue, ParentsNotSupported
from tidemill.values.bounds import Bounds
from tidemill.values.jobs import PRIORITY_RANGE, NewJob
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

_WANTED: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "id": ("a UUID", (UUID,)),
    "payload": ("bytes", (bytes,)),
    "priority": ("a whole number", (int,)),
    "delay": ("a timedelta", (timedelta, NoneType)),
    "expires": ("a timedelta", (timedelta, NoneType)),
    "timeout": ("a timedelta", (timedelta, NoneType)),
    "due_at": ("an aware datetime", (datetime, NoneType)),
    "not_after": ("an aware datetime", (datetime, NoneType)),
    "retry": ("a Retry", (Retry,)),
    "tags": ("a frozenset of tags", (frozenset,)),
    "parents": ("a tuple of job ids", (tuple,)),
    "rerun_of": ("a UUID", (UUID, NoneType)),
}
"""What a request is made of, beside its texts."""


def admit(job: NewJob, bounds: Bounds) -> None:
    """Refuse a job that a store cannot hold (clause F5).

    Raises:
        BoundExceeded: something is larger than its bound.
        InvalidValue: something of another type than is wanted, text with a NUL or a lone surrogate,
            an empty name, a priority or an instant out of range.
        ParentsNotSupported: it names parents.
    """
    for name, (wanted, kinds) in _WANTED.items():
        value = getattr(job, name)
        if not isinstance(value, kinds) or value is True or value is False:
            raise _wrong_type(name, value, wanted)
    if job.parents:
        message = "Jobs cannot wait for parents yet: enqueue without `after`."
        raise ParentsNotSupported(message)
    _bounded("Payload", len(job.payload), bounds.payload_bytes)
    _name("Wire name", job.wire_name, bounds.name_bytes)
    _name("Queue", job.queue, bounds.name_bytes)
    if job.tenant is not None:
        _name("Tenant", job.tenant, bounds.name_bytes)
    if job.idempotency_key is not None:
        _name("Idempotency key", job.idempotency_key, bounds.key_bytes)
    if job.trace_context is not None:
        _name("Trace context", job.trace_context, bounds.trace_context_bytes)
    _bounded("Number of tags", len(job.tags), bounds.tags_per_job, "tags")
    for tag in job.tags:
        admit_tag(tag, bounds)
    _timing(job)


def admit_tag(tag: Tag, bounds: Bounds) -> None:
    """Refuse a tag that a store cannot hold.

    Raises:
        BoundExceeded: its key or its value is larger than the bound.
        InvalidValue: the key is empty, or one of them holds a NUL or a lone surrogate.
    """
    _require_tag(tag)
    _name("Tag", tag.key, bounds.name_bytes)
    _text("Tag value", tag.value, bounds.name_bytes)


def admit_actor(actor: str, bounds: Bounds) -> None:
    """Refuse an actor that a store cannot write into a cause or an audit row (clause L1).

    Raises:
        BoundExceeded: it is longer than a name may be.
        InvalidValue: it is empty, or holds a NUL or a lone surrogate.
    """
    _name("Actor", actor, bounds.name_bytes)


def admit_queue(queue: str, bounds: Bounds) -> None:
    """Refuse a queue name that no job could carry.

    Raises:
        BoundExceeded: it is longer than a name may be.
        InvalidValue: it is empty, or holds a NUL or a lone surrogate.
    """
    _name("Queue", queue, bounds.name_bytes)


def _timing(job: NewJob) -> None:
    if job.priority not in PRIORITY_RANGE:
        message = (
            f"Priority {job.priority} is outside {PRIORITY_RANGE.start}…{PRIORITY_RANGE.stop - 1}."
        )
        raise InvalidValue(message)
    if job.delay is not None and job.due_at is not None:
        message = "A job has either a delay or a due instant, not both."
        raise InvalidValue(message)
    if job.not_after is not None and job.expires is not None:
        message = "A job expires either at an instant or after a duration, not both."
        raise InvalidValue(message)
    if job.timeout is not None and job.timeout <= timedelta(0):
        message = f"A timeout must be longer than nothing; got {job.timeout}."
        raise InvalidValue(message)
    for what, instant in (("Due instant", job.due_at), ("Expiry", job.not_after)):
        if instant is not None and instant.utcoffset() is None:
            message = f"{what} {instant} has no time zone; give an aware datetime."
            raise InvalidValue(message)
        if instant is not None and not _is_in_calendar(instant):
            message = f"{what} {instant} is outside the calendar in UTC, years 1 to 9999."
            raise InvalidValue(message)


def _is_in_calendar(instant: datetime) -> bool:
    try:
        instant.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _name(what: str, value: object, bound: int) -> None:
    if isinstance(value, str) and not value:
        message = f"{what} is empty; it must have at least one character."
        raise InvalidValue(message)
    _text(what, value, bound)


def _text(what: str, value: object, bound: int) -> None:
    if not isinstance(value, str):
        raise _wrong_type(what, value, "text")
    if "\0" in value:
        message = f"{what} {value!r} holds a NUL character, which databases cannot store."
        raise InvalidValue(message)
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        message = f"{what} {value!r} holds a lone surrogate, which is not text."
        raise InvalidValue(message) from error
    _bounded(what, size, bound)


def _require_tag(tag: object) -> None:
    if not isinstance(tag, Tag):
        raise _wrong_type("Tag", tag, "a Tag, which has a key and a value")


def _wrong_type(what: str, value: object, wanted: str) -> InvalidValue:
    return InvalidValue(f"{what}={value!r:.80} is of type {type(value).__name__}; give {wanted}.")


def _bounded(what: str, actual: int, bound: int, unit: str = "bytes") -> None:
    if actual > bound:
        raise BoundExceeded(what, actual, bound, unit)
