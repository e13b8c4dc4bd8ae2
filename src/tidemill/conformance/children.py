"""Children: jobs that an attempt leaves, stored with its success or not at all (D2, D3, F3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    SECOND,
    cancel,
    complete,
    details,
    enqueue_one,
    exchange,
    failure,
    lapse,
    maintain,
    new_job,
    outcome,
    register,
    report,
    request,
    start,
    state_of,
)
from tidemill.errors import BoundExceeded, TidemillError
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, Reported, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

OTHERS = [each for each in Verdict if each not in {Verdict.SUCCEEDED, Verdict.LAPSED}]


def is_there(store: Store, job: NewJob) -> bool:
    """Whether this very job is stored."""
    return store.perform_sync(GetJob(job.id)) is not None


def rich_child(**wish: Any) -> NewJob:
    """A job that says something in every field."""
    rich: dict[str, Any] = {
        "payload": b'{"stones":3}',
        "queue": "later",
        "priority": 7,
        "delay": timedelta(seconds=90),
        "expires": timedelta(days=1, microseconds=1),
        "timeout": timedelta(minutes=5),
        "retry": Retry.exponential(max_attempts=7),
        "idempotency_key": "k",
        "tenant": "acme",
        "tags": frozenset({Tag("vip"), Tag("order", "42")}),
        "trace_context": "00-ab-cd-01",
    }
    return new_job(**rich | wish)


def assert_stored_as_asked(
    store: Store, child: NewJob, clock: VirtualClock, since: datetime | None = None
) -> None:
    """The child is there with all that was asked for, and waits since the success of its parent."""
    since = since or clock()
    assert child.delay is not None
    assert child.expires is not None
    found = details(store, child.id)
    record = found.record
    assert (record.state, record.attempt) == (JobState.SCHEDULED, 0)
    assert (record.created_at, record.due_at) == (clock(), since + child.delay)
    assert record.not_after == since + child.expires
    for name in ("wire_name", "queue", "priority", "timeout", "retry", "idempotency_key", "tenant"):
        assert getattr(record, name) == getattr(child, name), name
    assert record.trace_context == child.trace_context
    assert (found.payload, found.tags) == (child.payload, child.tags)


def test_a_child_is_stored_with_the_success_of_its_parent(
    store: Store, clock: VirtualClock
) -> None:
    """D2, D3."""
    child = rich_child()
    job = start(store, register(store))
    clock.advance(SECOND)
    said = report(store, job, Verdict.SUCCEEDED, output=b"7", children=(child,))
    assert said == Reported(job.id, job.attempt, Answer.APPLIED, JobState.SUCCEEDED)
    assert details(store, job.id).output == b"7"
    assert_stored_as_asked(store, child, clock)


def test_a_child_that_is_due_is_claimed_by_the_exchange_that_stores_it(store: Store) -> None:
    """D2, D3."""
    child = new_job()
    job = start(store, register(store))
    success = outcome(job, Verdict.SUCCEEDED, children=(child,))
    reply = exchange(store, job.worker, success, claim=request(5))
    assert [each.id for each in reply.claimed] == [child.id]


def test_an_exchange_that_stores_a_child_for_later_says_when_that_is(store: Store) -> None:
    """D2, F1."""
    job = start(store, register(store))
    success = outcome(job, Verdict.SUCCEEDED, children=(new_job(delay=SECOND),))
    assert exchange(store, job.worker, success, claim=request(5)).next_due == SECOND


@pytest.mark.parametrize("verdict", OTHERS)
def test_an_attempt_that_does_not_succeed_leaves_no_child(store: Store, verdict: Verdict) -> None:
    """D2, D3."""
    child = new_job()
    job = start(store, register(store))
    said = report(store, job, verdict, error=BROKEN, delay=SECOND, children=(child,))
    assert said.answer is Answer.APPLIED
    assert not is_there(store, child)


def test_a_stale_success_leaves_no_child(store: Store, clock: VirtualClock) -> None:
    """D1, D2."""
    child = new_job()
    job = start(store, register(store), retry=AT_ONCE)
    lapse(store, clock)
    said = report(store, job, Verdict.SUCCEEDED, children=(child,))
    assert said.answer is Answer.STALE
    assert not is_there(store, child)


def test_a_success_that_is_reported_twice_leaves_its_children_once(store: Store) -> None:
    """D5, D2, M3."""
    child = new_job()
    job = start(store, register(store))
    success = outcome(job, Verdict.SUCCEEDED, children=(child,))
    exchange(store, job.worker, success)
    cancel(store, child.id)
    (said,) = exchange(store, job.worker, success).reported
    assert said.answer is Answer.ALREADY_APPLIED
    assert state_of(store, child.id) is JobState.CANCELLED


def test_the_key_that_a_success_frees_is_its_childs_to_take(store: Store) -> None:
    """F3, D3: so a job may enqueue its own successor."""
    child = new_job(idempotency_key="k")
    job = start(store, register(store), idempotency_key="k")
    report(store, job, Verdict.SUCCEEDED, children=(child,))
    assert details(store, child.id).record.idempotency_key == "k"


def test_the_keys_that_one_exchange_frees_are_all_free_for_its_children(store: Store) -> None:
    """F3, D3: whichever outcome comes first."""
    worker = register(store)
    first, second = start(store, worker), start(store, worker, idempotency_key="k")
    child = new_job(idempotency_key="k")
    exchange(
        store,
        worker,
        outcome(first, Verdict.SUCCEEDED, children=(child,)),
        outcome(second, Verdict.SUCCEEDED),
    )
    assert is_there(store, child)


def test_a_child_whose_key_an_active_job_carries_is_not_stored(store: Store) -> None:
    """F3: its parent has succeeded all the same."""
    enqueue_one(store, idempotency_key="k", queue="later")
    child = new_job(idempotency_key="k")
    job = start(store, register(store))
    said = report(store, job, Verdict.SUCCEEDED, children=(child,))
    assert (said.answer, said.state) == (Answer.APPLIED, JobState.SUCCEEDED)
    assert not is_there(store, child)


def test_of_two_children_with_one_key_the_first_is_stored(store: Store) -> None:
    """F3."""
    first, second = new_job(idempotency_key="k"), new_job(idempotency_key="k")
    job = start(store, register(store))
    report(store, job, Verdict.SUCCEEDED, children=(first, second))
    assert (is_there(store, first), is_there(store, second)) == (True, False)


def test_a_success_whose_child_no_store_could_hold_is_a_failed_attempt(store: Store) -> None:
    """D7, F5: with the reason, and its neighbours are recorded."""
    worker = register(store)
    job, neighbour = start(store, worker), start(store, worker)
    bad, good = new_job(queue=""), new_job()
    said = exchange(
        store,
        worker,
        outcome(job, Verdict.SUCCEEDED, output=b"7", children=(good, bad)),
        outcome(neighbour, Verdict.SUCCEEDED, children=(new_job(),)),
    ).reported
    assert [each.answer for each in said] == [Answer.APPLIED] * 2
    assert state_of(store, neighbour.id) is JobState.SUCCEEDED
    found = details(store, job.id)
    assert (found.record.state, found.output) == (JobState.SCHEDULED, None)
    (attempt,) = found.attempts
    assert attempt.error is not None
    assert "Queue is empty" in attempt.error.message
    assert not is_there(store, good)


def test_more_children_than_the_bound_make_a_failed_attempt(store: Store) -> None:
    """D7, F5."""
    job = start(store, register(store))
    count = store.bounds.children + 1
    report(store, job, Verdict.SUCCEEDED, children=tuple(new_job() for _ in range(count)))
    (attempt,) = details(store, job.id).attempts
    assert attempt.error is not None
    assert f"{count:,} jobs" in attempt.error.message


def test_children_of_many_parents_are_stored_in_one_exchange(store: Store) -> None:
    """D2, D4."""
    worker = register(store)
    parents = [start(store, worker) for _ in range(3)]
    children = [tuple(new_job() for _ in range(count)) for count in (2, 0, 3)]
    pairs = zip(parents, children, strict=True)
    successes = [outcome(job, Verdict.SUCCEEDED, children=left) for job, left in pairs]
    failed = failure(start(store, worker), children=(new_job(),))
    exchange(store, worker, *successes, failed)
    assert all(is_there(store, child) for left in children for child in left)
    assert not is_there(store, failed.children[0])


def test_the_children_of_a_completion_are_stored_when_it_is_settled(
    store: Store, clock: VirtualClock
) -> None:
    """D8, D2: by the report of the attempt."""
    child = rich_child()
    job = start(store, register(store))
    complete(store, job, tags=frozenset({Tag("fine")}), children=(child,))
    assert not is_there(store, child)
    completed_at = clock()
    clock.advance(SECOND)
    said = report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    assert said.answer is Answer.ALREADY_APPLIED
    assert_stored_as_asked(store, child, clock, completed_at)
    assert details(store, job.id).tags == {Tag("fine")}


def test_the_children_of_a_completion_are_stored_by_any_nodes_sweep(store: Store) -> None:
    """D8, D2: each once, with and without keys."""
    worker = register(store)
    one, other = start(store, worker), start(store, worker, idempotency_key="k")
    plain, keyed = new_job(), new_job(idempotency_key="k")
    complete(store, one, children=(plain,))
    complete(store, other, children=(keyed,))
    assert maintain(store).settled == len([plain, keyed])
    assert is_there(store, plain)
    assert is_there(store, keyed)
    cancel(store, plain.id, keyed.id)
    report(store, one, Verdict.SUCCEEDED, in_transaction=True)
    assert maintain(store).settled == 0
    assert state_of(store, plain.id) is JobState.CANCELLED


def test_a_completion_that_was_rolled_back_leaves_no_child(store: Store) -> None:
    """D8, D2."""
    child = new_job()
    job = start(store, register(store))
    report(store, job, Verdict.FAILED, error=BROKEN, in_transaction=True, children=(child,))
    assert not is_there(store, child)


def test_a_completion_with_a_child_that_no_store_could_hold_is_refused(store: Store) -> None:
    """D8, F5."""
    job = start(store, register(store))
    large = new_job(payload=b" " * (store.bounds.payload_bytes + 1))
    with pytest.raises(BoundExceeded, match="Payload"):
        complete(store, job, children=(large,))
    assert state_of(store, job.id) is JobState.RUNNING


def test_a_child_that_takes_the_id_of_another_job_ends_the_exchange_and_writes_nothing(
    store: Store,
) -> None:
    """A2, D3: the outcome is then offered with less."""
    taken = enqueue_one(store, queue="later")
    job = start(store, register(store))
    child = replace(new_job(payload=b'{"other":1}'), id=taken)
    with pytest.raises(TidemillError, match=str(taken)):
        report(store, job, Verdict.SUCCEEDED, children=(child,))
    assert state_of(store, job.id) is JobState.RUNNING


def test_an_exchange_that_settles_a_completion_says_when_a_child_of_it_is_due(
    store: Store,
) -> None:
    """D8, F1: and takes up what is due at once."""
    job = start(store, register(store))
    ready = new_job()
    complete(store, job, children=(new_job(delay=SECOND), ready))
    told = outcome(job, Verdict.FAILED, error=BROKEN, in_transaction=True)
    reply = exchange(store, job.worker, told, claim=request(5))
    assert reply.next_due == SECOND
    assert [each.id for each in reply.claimed] == [ready.id]
