"""Enqueue: options, batches, keys and refusals (clauses F1–F3, F5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from tidemill.conformance.endstates import ENDED, dead_job
from tidemill.conformance.scenes import (
    AT_ONCE,
    GRIND,
    MICROSECOND,
    SECOND,
    cancel,
    claim,
    claim_one,
    details,
    enqueue,
    enqueue_one,
    fail,
    fresh_job_id,
    maintain,
    new_job,
    register,
    requeue,
    run_now,
    start,
    state_of,
)
from tidemill.errors import BoundExceeded, InvalidValue, JobIdConflict, ParentsNotSupported
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs
from tidemill.values import causes
from tidemill.values.exchange import Share
from tidemill.values.jobs import PRIORITY_RANGE, Enqueued
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

KEY = "grind:lot-7"


def test_every_option_is_stored_and_reaches_the_handler(store: Store, clock: VirtualClock) -> None:
    """F1, F6, C3."""
    wish: dict[str, Any] = {
        "payload": '{"lot":"7 ½"}'.encode(),
        "queue": "stones",
        "priority": -5,
        "timeout": timedelta(seconds=90),
        "retry": Retry.fixed(SECOND, retry_on=("OSError",)),
        "tenant": "acme",
        "trace_context": "00-abc-def-01",
    }
    rest: dict[str, Any] = {
        "idempotency_key": KEY,
        "not_after": clock() + timedelta(days=1),
        "tags": frozenset({Tag("vip"), Tag("order", "42")}),
        "rerun_of": fresh_job_id(),
    }
    job_id = enqueue_one(store, **wish, **rest)
    stored = details(store, job_id)
    record = stored.record
    assert (stored.payload, stored.tags) == (wish["payload"], rest["tags"])
    for name in wish.keys() - {"payload"}:
        assert getattr(record, name) == wish[name]
    for name in rest.keys() - {"tags"}:
        assert getattr(record, name) == rest[name]
    assert (record.created_at, record.due_at, record.state) == (clock(), clock(), JobState.READY)
    (job,) = claim(store, register(store), 1, Share("stones", 1))
    for name, value in wish.items():
        assert getattr(job, name) == value


def test_a_plain_job_is_ready_at_once_with_every_default(store: Store, clock: VirtualClock) -> None:
    """F1."""
    job = new_job()
    assert enqueue(store, job) == (Enqueued(job.id, JobState.READY),)
    stored = details(store, job.id)
    assert (stored.payload, stored.output, stored.tags, stored.attempts) == (
        b"{}",
        None,
        frozenset(),
        (),
    )
    record = stored.record
    assert (record.wire_name, record.queue, record.priority) == (GRIND, "default", 0)
    assert (record.retry, record.timeout, record.tenant) == (Retry(), None, None)
    assert (record.due_at, record.created_at, record.cause) == (clock(), clock(), None)


def test_a_delay_is_counted_on_the_stores_clock(store: Store, clock: VirtualClock) -> None:
    """F1, A1."""
    job_id = enqueue_one(store, delay=SECOND)
    record = details(store, job_id).record
    assert (record.state, record.due_at) == (JobState.SCHEDULED, clock() + SECOND)


@pytest.mark.parametrize("delay", [timedelta(0), -SECOND])
def test_a_job_with_nothing_to_wait_for_is_ready(store: Store, delay: timedelta) -> None:
    """F1."""
    assert state_of(store, enqueue_one(store, delay=delay)) is JobState.READY


def test_a_job_due_at_this_very_instant_is_ready(store: Store, clock: VirtualClock) -> None:
    """F1."""
    assert state_of(store, enqueue_one(store, due_at=clock())) is JobState.READY
    later = enqueue_one(store, due_at=clock() + MICROSECOND)
    assert state_of(store, later) is JobState.SCHEDULED


def test_a_due_instant_in_the_past_is_kept_and_puts_the_job_ahead(
    store: Store, clock: VirtualClock
) -> None:
    """F1, C2."""
    enqueue_one(store)
    early = clock() - SECOND
    job_id = enqueue_one(store, due_at=early)
    job = claim_one(store, register(store))
    assert (job.id, job.due_at) == (job_id, early)


def test_a_batch_is_answered_in_its_order(store: Store) -> None:
    """F2."""
    jobs = [new_job(delay=SECOND if at % 2 else None) for at in range(50)]
    answers = enqueue(store, *jobs)
    assert [answer.job_id for answer in answers] == [job.id for job in jobs]
    states = [JobState.SCHEDULED if at % 2 else JobState.READY for at in range(50)]
    assert [answer.state for answer in answers] == states


def test_an_empty_batch_is_answered_with_nothing(store: Store) -> None:
    """F2."""
    assert enqueue(store) == ()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_refused_job_keeps_its_whole_batch_out(store: Store, place: int) -> None:
    """F2."""
    jobs = [new_job(), new_job()]
    jobs.insert(place, new_job(wire_name=""))
    with pytest.raises(InvalidValue):
        enqueue(store, *jobs)
    assert store.perform_sync(CountJobs()) == ()


def test_a_key_that_an_active_job_carries_answers_that_job_and_stores_nothing(
    store: Store,
) -> None:
    """F3."""
    first = enqueue_one(store, idempotency_key=KEY, delay=SECOND)
    before = details(store, first)
    other = new_job(idempotency_key=KEY, payload=b'{"other":1}', tags=frozenset({Tag("new")}))
    assert enqueue(store, other) == (Enqueued(first, JobState.SCHEDULED, deduplicated=True),)
    assert details(store, first) == before
    assert sum(count.count for count in store.perform_sync(CountJobs())) == 1


def test_a_key_is_held_through_running_and_backoff(store: Store) -> None:
    """F3."""
    job = start(store, register(store), idempotency_key=KEY)
    (running,) = enqueue(store, new_job(idempotency_key=KEY))
    assert (running.job_id, running.state) == (job.id, JobState.RUNNING)
    fail(store, job)
    (waiting,) = enqueue(store, new_job(idempotency_key=KEY))
    assert (waiting.job_id, waiting.state) == (job.id, JobState.SCHEDULED)


@pytest.mark.parametrize("state", ENDED)
def test_a_key_is_free_the_moment_its_job_is_terminal_and_stays_on_the_row(
    store: Store, state: JobState
) -> None:
    """F3."""
    ended = ENDED[state](store, idempotency_key=KEY)
    job = new_job(idempotency_key=KEY)
    assert enqueue(store, job) == (Enqueued(job.id, JobState.READY),)
    assert details(store, ended).record.idempotency_key == KEY


def test_a_key_is_unique_within_its_tenant_and_no_tenant_is_a_scope_of_its_own(
    store: Store,
) -> None:
    """F3."""
    tenants = [None, "acme", "zenith"]
    ids = [enqueue_one(store, idempotency_key=KEY, tenant=tenant) for tenant in tenants]
    assert len(set(ids)) == len(tenants)
    again = [enqueue_one(store, idempotency_key=KEY, tenant=tenant) for tenant in tenants]
    assert again == ids


def test_the_same_key_twice_in_one_batch_stores_one_job(store: Store) -> None:
    """F2, F3."""
    first, second, third = (new_job(idempotency_key=KEY) for _ in range(3))
    answers = enqueue(store, first, new_job(), second, third)
    assert [answer.deduplicated for answer in answers] == [False, False, True, True]
    assert {answers[0].job_id, answers[2].job_id, answers[3].job_id} == {first.id}


def test_a_requeue_takes_its_key_again(store: Store) -> None:
    """F3."""
    job_id = dead_job(store, idempotency_key=KEY)
    requeue(store, job_id)
    (answer,) = enqueue(store, new_job(idempotency_key=KEY))
    assert (answer.job_id, answer.deduplicated) == (job_id, True)


@pytest.mark.parametrize(
    ("wish", "bound"),
    [
        ("payload", "payload_bytes"),
        ("wire_name", "name_bytes"),
        ("queue", "name_bytes"),
        ("tenant", "name_bytes"),
        ("idempotency_key", "key_bytes"),
        ("trace_context", "trace_context_bytes"),
    ],
)
def test_what_is_over_its_bound_is_refused_and_what_just_fits_is_kept(
    store: Store, wish: str, bound: str
) -> None:
    """F5: the error names the bound and the actual size."""
    most: int = getattr(store.bounds, bound)
    fits: Any = b"x" * most if wish == "payload" else "x" * most
    enqueue_one(store, **{wish: fits})
    with pytest.raises(BoundExceeded) as refused:
        enqueue_one(store, **{wish: fits + fits[:1]})
    assert (refused.value.actual, refused.value.bound) == (most + 1, most)
    assert sum(count.count for count in store.perform_sync(CountJobs())) == 1


def test_too_many_tags_are_refused(store: Store) -> None:
    """F5."""
    most = store.bounds.tags_per_job
    enqueue_one(store, tags=frozenset(Tag(f"t{at}") for at in range(most)))
    with pytest.raises(BoundExceeded):
        enqueue_one(store, tags=frozenset(Tag(f"t{at}") for at in range(most + 1)))


@pytest.mark.parametrize("text", ["a\0b", "lone \ud800", "\udfff"])
@pytest.mark.parametrize(
    "wish", ["wire_name", "queue", "tenant", "idempotency_key", "trace_context"]
)
def test_text_that_no_database_holds_is_refused(store: Store, wish: str, text: str) -> None:
    """F5."""
    with pytest.raises(InvalidValue):
        enqueue_one(store, **{wish: text})


@pytest.mark.parametrize(
    "wish",
    [
        {"priority": PRIORITY_RANGE.start - 1},
        {"priority": PRIORITY_RANGE.stop},
        {"delay": SECOND, "due_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"due_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"not_after": datetime(2030, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"timeout": timedelta(0)},
        {"tags": frozenset({Tag("", "x")})},
        {"queue": ""},
    ],
)
def test_values_that_cannot_be_ordered_or_told_apart_are_refused(
    store: Store, wish: dict[str, Any]
) -> None:
    """F5."""
    with pytest.raises(InvalidValue):
        enqueue_one(store, **wish)


@pytest.mark.parametrize(
    "wish",
    [
        {"queue": 5},
        {"idempotency_key": 7},
        {"tenant": b"acme"},
        {"payload": "{}"},
        {"priority": "high"},
        {"priority": True},
        {"delay": 5},
        {"due_at": date(2030, 1, 1)},
        {"expires": "1h"},
        {"retry": 3},
        {"tags": {"vip"}},
        {"due_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))},
    ],
)
def test_what_is_of_another_type_than_is_wanted_is_refused_and_nothing_is_written(
    store: Store, wish: dict[str, Any]
) -> None:
    """F5."""
    with pytest.raises(InvalidValue):
        enqueue_one(store, **wish)
    assert store.perform_sync(CountJobs()) == ()


@pytest.mark.parametrize("priority", [PRIORITY_RANGE.start, PRIORITY_RANGE.stop - 1])
def test_the_outermost_priorities_are_kept(store: Store, priority: int) -> None:
    """F1."""
    assert details(store, enqueue_one(store, priority=priority)).record.priority == priority


def test_parents_are_refused_while_there_are_no_dependencies(store: Store) -> None:
    """F5."""
    with pytest.raises(ParentsNotSupported):
        enqueue_one(store, parents=(fresh_job_id(),))


def test_a_delay_past_the_end_of_the_calendar_is_stored(store: Store) -> None:
    """F1."""
    assert state_of(store, enqueue_one(store, delay=timedelta.max)) is JobState.SCHEDULED


@pytest.mark.parametrize("state", [JobState.READY, JobState.SCHEDULED])
def test_an_unstarted_job_expires_at_its_instant_and_maintenance_finds_it(
    store: Store, clock: VirtualClock, state: JobState
) -> None:
    """F1, B2."""
    delay = timedelta(days=1) if state is JobState.SCHEDULED else None
    job_id = enqueue_one(store, not_after=clock() + SECOND, delay=delay, idempotency_key=KEY)
    clock.advance(SECOND - MICROSECOND)
    assert maintain(store).expired == 0
    clock.advance(MICROSECOND)
    assert maintain(store).expired == 1
    record = details(store, job_id).record
    assert (record.state, record.cause) == (JobState.CANCELLED, causes.EXPIRED)
    assert record.finished_at == clock()
    assert maintain(store).expired == 0
    assert enqueue_one(store, idempotency_key=KEY) != job_id


def test_an_expiry_may_be_counted_on_the_stores_clock(store: Store, clock: VirtualClock) -> None:
    """F1, A1."""
    job_id = enqueue_one(store, expires=SECOND)
    assert details(store, job_id).record.not_after == clock() + SECOND
    clock.advance(SECOND)
    assert maintain(store).expired == 1


def test_an_expired_job_is_never_claimed(store: Store, clock: VirtualClock) -> None:
    """F1: whether a sweep has come by or not, and it takes no room from the others."""
    expired = enqueue_one(store, not_after=clock() + SECOND)
    late = enqueue_one(store, not_after=clock() + 2 * SECOND, delay=SECOND)
    clock.advance(SECOND)
    assert [job.id for job in claim(store, register(store), 1)] == [late]
    maintain(store)
    assert details(store, expired).record.cause == causes.EXPIRED


def test_a_job_that_was_started_does_not_expire(store: Store, clock: VirtualClock) -> None:
    """F1."""
    worker = register(store)
    job = start(store, worker, not_after=clock() + SECOND, retry=AT_ONCE)
    clock.advance(2 * SECOND)
    assert maintain(store).expired == 0
    fail(store, job)
    assert maintain(store).expired == 0
    assert claim_one(store, worker).id == job.id


def test_a_started_job_past_its_expiry_keeps_the_sweep_from_none_behind_it(
    store: Store, clock: VirtualClock
) -> None:
    """F1."""
    job = start(store, register(store), not_after=clock() + SECOND)
    unstarted = enqueue_one(store, not_after=clock() + 2 * SECOND)
    fail(store, job)
    clock.advance(2 * SECOND)
    assert maintain(store, limit=1).expired == 1
    assert state_of(store, unstarted) is JobState.CANCELLED
    assert state_of(store, job.id) is JobState.SCHEDULED


def test_expiry_is_swept_in_bounded_batches(store: Store, clock: VirtualClock) -> None:
    """F1."""
    for _ in range(5):
        enqueue_one(store, not_after=clock() + SECOND)
    clock.advance(SECOND)
    rounds = [maintain(store, limit=2) for _ in range(3)]
    assert [(done.expired, done.more) for done in rounds] == [(2, True), (2, True), (1, False)]


def test_a_job_made_ready_before_its_time_can_still_be_cancelled(store: Store) -> None:
    """F1, G1."""
    job_id = enqueue_one(store, delay=timedelta(days=1))
    run_now(store, job_id)
    cancel(store, job_id)
    assert state_of(store, job_id) is JobState.CANCELLED


def test_thousands_of_jobs_with_keys_are_judged_as_a_few_would_be(store: Store) -> None:
    """F2, F3, A2: whatever number a database takes in one statement."""
    held = [enqueue_one(store, idempotency_key=f"k{n}") for n in (3, 2_500)]
    known = new_job()
    enqueue(store, known)
    asked = [new_job(idempotency_key=f"k{n}") for n in range(2_600)]
    twin = new_job(idempotency_key="k7", tenant="acme")
    again = new_job(idempotency_key="k1500")
    answers = enqueue(store, *asked, known, twin, again, asked[2_000])
    assert [answers[n].job_id for n in (3, 2_500)] == held
    assert [n for n, answer in enumerate(answers) if answer.deduplicated] == [3, 2_500, 2_602]
    assert answers[2_602].job_id == asked[1_500].id
    assert [n for n, answer in enumerate(answers) if answer.repeated] == [2_600, 2_603]
    assert answers[2_601] == Enqueued(twin.id, JobState.READY)
    (count,) = store.perform_sync(CountJobs())
    assert count.count == 2 + 1 + 2_598 + 1


def test_a_conflict_at_the_end_of_thousands_of_jobs_leaves_none_of_them(store: Store) -> None:
    """F2, A2."""
    first = new_job()
    crowd = [new_job(idempotency_key=f"k{n}") for n in range(2_100)]
    with pytest.raises(JobIdConflict):
        enqueue(store, first, *crowd, replace(first, priority=1))
    assert store.perform_sync(CountJobs()) == ()
