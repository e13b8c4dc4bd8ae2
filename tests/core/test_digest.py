"""Telling a repeated request from another one, on any machine and in any version (clause A2)."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from tidemill.core.digest import content_digest
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.retry import DEFAULT_RETRY, Backoff, Retry
from tidemill.values.tags import Tag

ID = JobId(UUID(int=1))
JOB = NewJob(id=ID, wire_name="mill.grind")
OTHERWISE = {
    "wire_name": "other",
    "payload": b"[]",
    "queue": "other",
    "priority": 1,
    "delay": timedelta(seconds=1),
    "due_at": datetime(2030, 1, 1, tzinfo=UTC),
    "not_after": datetime(2030, 1, 1, tzinfo=UTC),
    "expires": timedelta(seconds=1),
    "timeout": timedelta(seconds=1),
    "retry": Retry.never(),
    "idempotency_key": "k",
    "tenant": "t",
    "tags": frozenset({Tag("t")}),
    "trace_context": "c",
    "rerun_of": JobId(UUID(int=2)),
}

FULL = replace(
    JOB,
    payload=b'{"lot":7}',
    queue="mail",
    priority=-3,
    due_at=datetime(2030, 1, 1, 12, tzinfo=UTC),
    expires=timedelta(days=1, microseconds=1),
    timeout=timedelta(seconds=30),
    retry=Retry.listed(timedelta(seconds=1), timedelta(minutes=1), max_attempts=4, jitter=0.5),
    idempotency_key="k",
    tenant="acme",
    tags=frozenset({Tag("vip"), Tag("order", "42"), Tag("order", "7")}),
    trace_context="00-1",
    rerun_of=JobId(UUID(int=2)),
)
RETRY_OTHERWISE = {
    "max_attempts": 9,
    "backoff": Backoff.FIXED,
    "delays": (timedelta(seconds=1),),
    "factor": 3.0,
    "cap": timedelta(seconds=9),
    "jitter": 0.25,
    "count_lapses": True,
    "interruption_limit": 1,
    "retry_on": ("ValueError",),
    "discard_on": ("ValueError",),
}


@pytest.mark.parametrize(
    ("job", "digest"),
    [(JOB, "7551d9d2198641cea98c27864af91607"), (FULL, "5841c1e42a18674a3f375d3e26813c02")],
    ids=["plain", "full"],
)
def test_a_digest_that_was_stored_once_is_the_same_for_ever(job, digest) -> None:
    assert content_digest(job).hex() == digest


def test_the_same_content_has_the_same_digest_whatever_its_id() -> None:
    other = NewJob(id=JobId(UUID(int=9)), wire_name="mill.grind")
    assert content_digest(JOB) == content_digest(other)


def test_the_order_in_which_tags_were_given_does_not_matter() -> None:
    tags = [Tag(f"t{n}") for n in range(20)]
    forwards, backwards = frozenset(tags), frozenset(reversed(tags))
    assert content_digest(replace(JOB, tags=forwards)) == content_digest(
        replace(JOB, tags=backwards)
    )


def test_every_field_but_the_id_and_the_refused_parents_makes_another_digest() -> None:
    names = {field.name for field in fields(NewJob)}
    assert names == OTHERWISE.keys() | {"id", "parents"}
    digests = {content_digest(replace(JOB, **{name: OTHERWISE[name]})) for name in OTHERWISE}
    assert len(digests | {content_digest(JOB)}) == len(OTHERWISE) + 1


def test_a_digest_takes_text_that_would_be_refused() -> None:
    assert content_digest(replace(JOB, tenant="\ud800")) != content_digest(JOB)


def test_the_same_instant_in_another_zone_is_the_same_content() -> None:
    east = timezone(timedelta(hours=5, minutes=45))
    for field in ("due_at", "not_after"):
        instant = datetime(2030, 1, 1, 12, 0, 0, 123_457, tzinfo=UTC)
        here = content_digest(replace(JOB, **{field: instant}))
        assert here == content_digest(replace(JOB, **{field: instant.astimezone(east)}))
        later = instant + timedelta(microseconds=1)
        assert here != content_digest(replace(JOB, **{field: later}))


def test_every_part_of_a_policy_that_differs_makes_another_digest() -> None:
    assert {field.name for field in fields(Retry)} == RETRY_OTHERWISE.keys()
    policies = [replace(DEFAULT_RETRY, **{name: value}) for name, value in RETRY_OTHERWISE.items()]
    digests = {content_digest(replace(JOB, retry=policy)) for policy in policies}
    assert len(digests | {content_digest(JOB)}) == len(policies) + 1


def test_a_whole_number_in_a_policy_is_the_number_that_it_is() -> None:
    whole, broken = Retry(factor=3, jitter=0), Retry(factor=3.0, jitter=0.0)
    assert content_digest(replace(JOB, retry=whole)) == content_digest(replace(JOB, retry=broken))


def test_a_payload_that_looks_like_content_is_told_from_it() -> None:
    one = replace(JOB, wire_name="a", payload=b'"b')
    other = replace(JOB, wire_name='a"', payload=b"b")
    assert content_digest(one) != content_digest(other)
