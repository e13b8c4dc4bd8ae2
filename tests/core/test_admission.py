"""What a store may be asked to hold (clause F5)."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import pytest

from tidemill.core.admission import admit, admit_actor, admit_queue
from tidemill.errors import BoundExceeded, InvalidValue, ParentsNotSupported
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.tags import Tag

ID = JobId(UUID(int=1))
JOB = NewJob(id=ID, wire_name="mill.grind")
SMALL = Bounds(payload_bytes=4, name_bytes=4, key_bytes=4, trace_context_bytes=4, tags_per_job=1)
FITS = NewJob(
    id=ID,
    wire_name="abcd",
    payload=b"1234",
    queue="abcd",
    tenant="abcd",
    idempotency_key="abcd",
    trace_context="abcd",
    tags=frozenset({Tag("abcd", "abcd")}),
)
NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 - what a user forgets


def test_the_plainest_job_is_admitted() -> None:
    admit(JOB, DEFAULT_BOUNDS)


def test_what_just_fits_is_admitted() -> None:
    admit(FITS, SMALL)


@pytest.mark.parametrize(
    ("wish", "value", "what"),
    [
        ("payload", b"12345", "Payload"),
        ("wire_name", "abcde", "Wire name"),
        ("queue", "abcde", "Queue"),
        ("tenant", "abcde", "Tenant"),
        ("idempotency_key", "abcde", "Idempotency key"),
        ("trace_context", "abcde", "Trace context"),
        ("wire_name", "ab½½", "Wire name"),
        ("tags", frozenset({Tag("abcde")}), "Tag"),
        ("tags", frozenset({Tag("a", "abcde")}), "Tag value"),
        ("tags", frozenset({Tag("a"), Tag("b")}), "Number of tags"),
    ],
)
def test_what_is_too_large_is_refused_with_its_size_and_the_bound(wish, value, what) -> None:
    with pytest.raises(BoundExceeded) as refused:
        admit(replace(FITS, **{wish: value}), SMALL)
    assert refused.value.what == what
    assert refused.value.actual > refused.value.bound
    assert str(refused.value.bound) in str(refused.value)
    assert str(refused.value.actual) in str(refused.value)


@pytest.mark.parametrize("text", ["", "a\0", "\ud800", "a\udfff"])
@pytest.mark.parametrize(
    "wish", ["wire_name", "queue", "tenant", "idempotency_key", "trace_context"]
)
def test_names_that_no_store_can_hold_are_refused(wish, text) -> None:
    with pytest.raises(InvalidValue):
        admit(replace(JOB, **{wish: text}), DEFAULT_BOUNDS)


@pytest.mark.parametrize("tag", [Tag(""), Tag("\0"), Tag("a", "\0"), Tag("a", "\ud800")])
def test_tags_that_no_store_can_hold_are_refused(tag) -> None:
    with pytest.raises(InvalidValue):
        admit(replace(JOB, tags=frozenset({tag})), DEFAULT_BOUNDS)


@pytest.mark.parametrize("priority", [-32_768, 32_767])
def test_the_outermost_priorities_are_admitted(priority) -> None:
    admit(replace(JOB, priority=priority), DEFAULT_BOUNDS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": -32_769},
        {"priority": 32_768},
        {"delay": timedelta(0), "due_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"expires": timedelta(0), "not_after": datetime(2030, 1, 1, tzinfo=UTC)},
        {"timeout": timedelta(0)},
        {"timeout": timedelta(seconds=-1)},
        {"due_at": NAIVE},
        {"not_after": NAIVE},
    ],
)
def test_timing_that_means_nothing_is_refused(wrong) -> None:
    with pytest.raises(InvalidValue):
        admit(replace(JOB, **wrong), DEFAULT_BOUNDS)


def test_parents_are_refused() -> None:
    with pytest.raises(ParentsNotSupported):
        admit(replace(JOB, parents=(ID,)), DEFAULT_BOUNDS)


def test_an_actor_is_a_name() -> None:
    admit_actor("ada@example.org", DEFAULT_BOUNDS)
    for wrong in ("", "a\0", "\ud800"):
        with pytest.raises(InvalidValue):
            admit_actor(wrong, DEFAULT_BOUNDS)
    with pytest.raises(BoundExceeded):
        admit_actor("abcde", SMALL)


def test_a_queue_that_no_job_could_be_in_is_refused() -> None:
    admit_queue("mail", DEFAULT_BOUNDS)
    for wrong in ("", "a\0", "\ud800"):
        with pytest.raises(InvalidValue):
            admit_queue(wrong, DEFAULT_BOUNDS)
    with pytest.raises(BoundExceeded):
        admit_queue("abcde", SMALL)


@pytest.mark.parametrize(
    ("wish", "value", "says"),
    [
        ("id", "1", "id='1' is of type str; give a UUID"),
        ("wire_name", 5, "Wire name=5 is of type int; give text"),
        ("queue", b"mail", "Queue=b'mail' is of type bytes; give text"),
        ("tenant", 5, "Tenant=5"),
        ("idempotency_key", 7, "Idempotency key=7"),
        ("trace_context", 7, "Trace context=7"),
        ("payload", "{}", "payload='{}' is of type str; give bytes"),
        ("priority", "high", "priority='high' is of type str; give a whole number"),
        ("priority", True, "priority=True is of type bool"),
        ("priority", 1.0, "priority=1.0"),
        ("delay", 5, "delay=5 is of type int; give a timedelta"),
        ("expires", "1h", "expires='1h'"),
        ("timeout", 30, "timeout=30"),
        ("due_at", date(2030, 1, 1), "is of type date; give an aware datetime"),
        ("not_after", "2030", "not_after='2030'"),
        ("retry", None, "retry=None is of type NoneType; give a Retry"),
        ("tags", {"vip"}, "is of type set; give a frozenset of tags"),
        ("tags", frozenset({"vip"}), "Tag='vip' is of type str; give a Tag"),
        ("tags", frozenset({Tag("a", 5)}), "Tag value=5"),  # type: ignore[arg-type]
        ("rerun_of", "1", "rerun_of='1'"),
        ("due_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "outside the cal"),
    ],
)
def test_what_is_of_another_type_is_refused_with_what_is_wanted(wish, value, says) -> None:
    with pytest.raises(InvalidValue) as refused:
        admit(replace(JOB, **{wish: value}), DEFAULT_BOUNDS)
    assert says in str(refused.value)


@pytest.mark.parametrize("wrong", [5, None, b"ada"])
def test_an_actor_or_a_queue_that_is_no_text_is_refused(wrong) -> None:
    for check in (admit_actor, admit_queue):
        with pytest.raises(InvalidValue, match="give text"):
            check(wrong, DEFAULT_BOUNDS)
