"""Identity and time: ids, attempts and instants (clauses A1–A4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    MICROSECOND,
    SECOND,
    cancel,
    claim,
    claim_one,
    details,
    enqueue,
    enqueue_one,
    fail,
    lapse,
    new_job,
    register,
    report,
    requeue,
    start,
)
from tidemill.errors import JobIdConflict
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.values.ids import JobId
from tidemill.values.jobs import Claimed, Enqueued
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

WayBack = Callable[[Store, VirtualClock, Claimed], object]


def _requeued(store: Store, _: VirtualClock, job: Claimed) -> None:
    report(store, job, Verdict.DISCARDED, error=BROKEN)
    requeue(store, job.id)


def _requeued_after_a_cancel(store: Store, _: VirtualClock, job: Claimed) -> None:
    cancel(store, job.id)
    report(store, job, Verdict.CANCELLED)
    requeue(store, job.id)


WAYS_BACK: dict[str, WayBack] = {
    "failed": lambda store, _, job: fail(store, job),
    "released": lambda store, _, job: report(store, job, Verdict.RELEASED),
    "snoozed": lambda store, _, job: report(store, job, Verdict.SNOOZED),
    "lapsed": lambda store, clock, _: lapse(store, clock),
    "requeued": _requeued,
    "requeued after a cancel": _requeued_after_a_cancel,
}


def test_the_same_request_again_is_stored_once(store: Store) -> None:
    """A2, M3: an enqueue whose answer was lost can be repeated."""
    job = new_job(payload=b'{"lot":7}', tags=frozenset({Tag("a"), Tag("b", "c")}), delay=SECOND)
    assert enqueue(store, job) == (Enqueued(job.id, JobState.SCHEDULED),)
    before = details(store, job.id)
    assert enqueue(store, job) == (Enqueued(job.id, JobState.SCHEDULED, repeated=True),)
    assert details(store, job.id) == before


def test_the_same_request_after_the_job_ended_reports_it_and_runs_nothing(store: Store) -> None:
    """A2."""
    worker = register(store)
    job = new_job(idempotency_key="k")
    enqueue(store, job)
    report(store, claim_one(store, worker), Verdict.SUCCEEDED)
    assert enqueue(store, job) == (Enqueued(job.id, JobState.SUCCEEDED, repeated=True),)
    assert claim(store, worker) == ()


def test_the_same_request_with_an_idempotency_key_is_repeated_and_not_deduplicated(
    store: Store,
) -> None:
    """A2, F3."""
    job = new_job(idempotency_key="k")
    enqueue(store, job)
    assert enqueue(store, job) == (Enqueued(job.id, JobState.READY, repeated=True),)


def test_the_same_request_twice_in_one_batch_is_stored_once(store: Store) -> None:
    """A2, F2."""
    job = new_job()
    first, again = enqueue(store, job, job)
    assert (first.repeated, again.repeated) == (False, True)


@pytest.mark.parametrize(
    "change",
    [{"payload": b"[]"}, {"queue": "b"}, {"priority": 1}, {"delay": SECOND}, {"tenant": "a"}],
    ids=lambda change: next(iter(change)),
)
def test_the_same_id_with_other_content_is_an_error_and_nothing_is_written(
    store: Store, change: dict[str, object]
) -> None:
    """A2, F2."""
    job = new_job()
    enqueue(store, job)
    before = details(store, job.id)
    neighbour = new_job()
    with pytest.raises(JobIdConflict):
        enqueue(store, neighbour, replace(job, **change))  # type: ignore[arg-type] # one of its fields
    assert details(store, job.id) == before
    assert store.perform_sync(GetJob(neighbour.id)) is None


def test_one_id_with_two_contents_in_one_batch_is_an_error(store: Store) -> None:
    """A2, F2."""
    job = new_job()
    with pytest.raises(JobIdConflict):
        enqueue(store, job, replace(job, priority=1))
    assert store.perform_sync(GetJob(job.id)) is None


def test_ids_are_ordered_by_their_bytes(store: Store) -> None:
    """A2: whatever the database thinks the order of such a value is."""
    texts = [
        "01000000-0000-7000-8000-000000000000",
        "00000000-0000-7000-8000-0000000000ff",
        "00000000-0000-7000-8000-000000000100",
        "7fffffff-0000-7000-8000-000000000000",
        "80000000-0000-7000-8000-000000000000",
        "ff000000-0000-7000-8000-000000000001",
    ]
    ids = [JobId(UUID(text)) for text in texts]
    enqueue(store, *(new_job(id=job_id) for job_id in ids))
    ascending = sorted(ids, key=lambda job_id: job_id.bytes)
    assert [job.id for job in claim(store, register(store), 9)] == ascending
    page = store.perform_sync(ListJobs())
    assert [job.id for job in page.jobs] == ascending[::-1]


def test_an_attempt_is_numbered_from_one_by_its_claim(store: Store) -> None:
    """A4."""
    job_id = enqueue_one(store)
    assert details(store, job_id).record.attempt == 0
    assert claim_one(store, register(store)).attempt == 1
    assert details(store, job_id).record.attempt == 1


@pytest.mark.parametrize("way", WAYS_BACK)
def test_the_attempt_only_ever_climbs(store: Store, clock: VirtualClock, way: str) -> None:
    """A4."""
    job = start(store, register(store), retry=AT_ONCE)
    for attempt in (1, 2, 3):
        assert job.attempt == attempt
        WAYS_BACK[way](store, clock, job)
        assert details(store, job.id).record.attempt == attempt
        job = claim_one(store, register(store))


def test_instants_keep_their_microseconds_and_come_back_in_utc(
    store: Store, clock: VirtualClock
) -> None:
    """A1."""
    clock.set(datetime(2026, 3, 29, 0, 59, 59, 999_999, tzinfo=UTC))
    east = timezone(timedelta(hours=5, minutes=45))
    due_at = datetime(2031, 7, 1, 12, 30, 15, 123_457, tzinfo=east)
    not_after = due_at + MICROSECOND
    record = details(store, enqueue_one(store, due_at=due_at, not_after=not_after)).record
    assert (record.created_at, record.due_at, record.not_after) == (clock(), due_at, not_after)
    for instant in (record.created_at, record.due_at, record.not_after):
        assert instant is not None
        assert instant.utcoffset() == timedelta(0)


def test_durations_keep_their_microseconds(store: Store) -> None:
    """A1."""
    timeout = timedelta(days=3, microseconds=7)
    assert start(store, register(store), timeout=timeout).timeout == timeout
