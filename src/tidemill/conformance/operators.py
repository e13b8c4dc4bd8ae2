"""Operator actions: requeue, rerun, run now, and that each is done once (clauses B, L1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tidemill.conformance.endstates import ENDED, cancelled_job, dead_job, succeeded_job
from tidemill.conformance.scenes import (
    LEASE,
    MILLER,
    SECOND,
    cancel,
    claim_one,
    details,
    enqueue_one,
    fresh_action,
    fresh_job_id,
    maintain,
    register,
    report,
    requeue,
    rerun,
    run_now,
    start,
    state_of,
)
from tidemill.errors import ActionIdReused, InvalidValue, JobIdConflict
from tidemill.store.contract import Operation, Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs, GetJob
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import REQUEUEABLE, JobState
from tidemill.values.tags import Tag

WISH: dict[str, Any] = {
    "payload": b'{"lot":7}',
    "queue": "default",
    "priority": 4,
    "timeout": timedelta(minutes=2),
    "retry": Retry.fixed(SECOND),
    "tenant": "acme",
    "trace_context": "00-abc-def-01",
    "tags": frozenset({Tag("vip")}),
}


@pytest.mark.parametrize("state", sorted(REQUEUEABLE))
def test_a_requeued_job_is_ready_with_its_history_kept(
    store: Store, clock: VirtualClock, state: JobState
) -> None:
    """B1, A4, L1."""
    job_id = ENDED[state](store)
    before = details(store, job_id)
    clock.advance(SECOND)
    assert requeue(store, job_id) == (
        ActionResult(job_id=job_id, effect=Effect.DONE, state=JobState.READY),
    )
    after = details(store, job_id)
    record = after.record
    assert (record.state, record.due_at) == (JobState.READY, clock())
    assert (record.cause, record.finished_at, record.cancel_requested) == (None, None, None)
    assert (record.attempt, after.attempts) == (before.record.attempt, before.attempts)
    assert (record.failures_base, record.lapses_base) == (record.failures, record.lapses)
    assert claim_one(store, register(store)).attempt == before.record.attempt + 1


def test_only_dead_quarantined_and_cancelled_jobs_can_be_requeued(store: Store) -> None:
    """B1: `succeeded` has no exit."""
    running = start(store, register(store)).id
    ended = succeeded_job(store)
    others = [enqueue_one(store), enqueue_one(store, delay=SECOND), running, ended]
    before = [details(store, job_id) for job_id in others]
    effects = [result.effect for result in requeue(store, *others)]
    assert effects == [Effect.UNCHANGED] * 4
    assert [details(store, job_id) for job_id in others] == before


def test_a_requeue_whose_key_is_held_says_by_whom_and_goes_on_with_the_others(
    store: Store,
) -> None:
    """F3, L1."""
    blocked = cancelled_job(store, idempotency_key="k")
    free = cancelled_job(store, idempotency_key="other")
    holder = enqueue_one(store, idempotency_key="k")
    unknown = fresh_job_id()
    before = details(store, blocked)
    assert requeue(store, blocked, unknown, free) == (
        ActionResult(
            job_id=blocked, effect=Effect.KEY_HELD, state=JobState.CANCELLED, other=holder
        ),
        ActionResult(job_id=unknown, effect=Effect.NOT_FOUND),
        ActionResult(job_id=free, effect=Effect.DONE, state=JobState.READY),
    )
    assert details(store, blocked) == before


def test_of_two_jobs_with_one_key_a_bulk_requeue_takes_the_first(store: Store) -> None:
    """F3, L1."""
    first, second = (cancelled_job(store, idempotency_key="k") for _ in range(2))
    done, held = requeue(store, first, second)
    assert (done.effect, held.effect, held.other) == (Effect.DONE, Effect.KEY_HELD, first)


def test_a_requeued_job_that_had_expired_does_not_expire_again(
    store: Store, clock: VirtualClock
) -> None:
    """F1, L1: the expiry spoke of the first request."""
    job_id = enqueue_one(store, not_after=clock() + SECOND)
    clock.advance(SECOND)
    maintain(store)
    assert state_of(store, job_id) is JobState.CANCELLED
    requeue(store, job_id)
    assert maintain(store).expired == 0
    assert claim_one(store, register(store)).id == job_id


@pytest.mark.parametrize("state", ENDED)
def test_a_rerun_is_a_new_job_with_the_content_of_a_terminal_one(
    store: Store, clock: VirtualClock, state: JobState
) -> None:
    """L1."""
    job_id = ENDED[state](store, **WISH, idempotency_key="k", not_after=clock() + timedelta(days=1))
    before = details(store, job_id)
    clock.advance(SECOND)
    result = rerun(store, job_id)
    assert (result.job_id, result.effect, result.state) == (job_id, Effect.DONE, state)
    assert result.other is not None
    copy = details(store, result.other)
    record = copy.record
    assert (copy.payload, copy.tags) == (WISH["payload"], WISH["tags"])
    for name in ("queue", "priority", "timeout", "retry", "tenant", "trace_context"):
        assert getattr(record, name) == WISH[name]
    assert (record.state, record.attempt, record.due_at) == (JobState.READY, 0, clock())
    assert (record.rerun_of, record.idempotency_key, record.not_after) == (job_id, None, None)
    assert (copy.output, copy.attempts) == (None, ())
    assert details(store, job_id) == before


def test_a_job_that_has_not_ended_cannot_be_rerun(store: Store) -> None:
    """L1."""
    job_id = enqueue_one(store)
    assert rerun(store, job_id) == ActionResult(
        job_id=job_id, effect=Effect.UNCHANGED, state=JobState.READY
    )
    assert sum(count.count for count in store.perform_sync(CountJobs())) == 1


def test_an_unknown_job_cannot_be_rerun(store: Store) -> None:
    """L1."""
    unknown = fresh_job_id()
    assert rerun(store, unknown) == ActionResult(job_id=unknown, effect=Effect.NOT_FOUND)


def test_a_rerun_under_an_id_that_is_taken_is_refused(store: Store) -> None:
    """L1, A2."""
    ended = dead_job(store)
    taken = enqueue_one(store, queue="other")
    before = details(store, taken)
    with pytest.raises(JobIdConflict):
        store.perform_sync(Rerun(job_id=ended, new_id=taken, actor=MILLER, action=fresh_action()))
    assert details(store, taken) == before


def test_a_scheduled_job_can_be_run_now_at_no_cost(store: Store, clock: VirtualClock) -> None:
    """L1, E2."""
    worker = register(store)
    waiting = enqueue_one(store, delay=timedelta(days=9))
    assert run_now(store, waiting) == (
        ActionResult(job_id=waiting, effect=Effect.DONE, state=JobState.READY),
    )
    job = claim_one(store, worker)
    assert (job.id, job.attempt, job.due_at) == (waiting, 1, clock())
    report(store, job, Verdict.FAILED)
    run_now(store, waiting)
    record = details(store, waiting).record
    assert (record.state, record.failures, record.failures_base) == (JobState.READY, 1, 0)


def test_only_scheduled_jobs_can_be_run_now(store: Store) -> None:
    """L1, B1."""
    ended = [make(store) for make in ENDED.values()]
    running = start(store, register(store)).id
    others = [enqueue_one(store), running, *ended]
    before = [details(store, job_id) for job_id in others]
    assert {result.effect for result in run_now(store, *others)} == {Effect.UNCHANGED}
    assert [details(store, job_id) for job_id in others] == before
    assert [result.effect for result in run_now(store, fresh_job_id())] == [Effect.NOT_FOUND]


def _cancel(job_id: JobId) -> Operation[Any]:
    return Cancel(job_ids=(job_id,), actor=MILLER, action=fresh_action())


def _requeue(job_id: JobId) -> Operation[Any]:
    return Requeue(job_ids=(job_id,), actor=MILLER, action=fresh_action())


def _run_now(job_id: JobId) -> Operation[Any]:
    return RunNow(job_ids=(job_id,), actor=MILLER, action=fresh_action())


def _rerun(job_id: JobId) -> Operation[Any]:
    return Rerun(job_id=job_id, new_id=fresh_job_id(), actor=MILLER, action=fresh_action())


def _scheduled(store: Store) -> JobId:
    return enqueue_one(store, delay=timedelta(days=1))


REPEATABLE: dict[str, tuple[Callable[[Store], JobId], Callable[[JobId], Operation[Any]]]] = {
    "cancel": (enqueue_one, _cancel),
    "requeue": (dead_job, _requeue),
    "run now": (_scheduled, _run_now),
    "rerun": (dead_job, _rerun),
}


@pytest.mark.parametrize("action", REPEATABLE)
def test_the_same_action_again_changes_nothing_and_is_answered_as_the_first(
    store: Store, clock: VirtualClock, action: str
) -> None:
    """L1, M3."""
    make, act = REPEATABLE[action]
    job_id = make(store)
    operation = act(job_id)
    first = store.perform_sync(operation)
    before = details(store, job_id)
    jobs = store.perform_sync(CountJobs())
    clock.advance(LEASE / 2)
    assert store.perform_sync(operation) == first
    assert details(store, job_id) == before
    assert store.perform_sync(CountJobs()) == jobs


def test_a_repeated_requeue_does_not_undo_what_came_after_it(store: Store) -> None:
    """L1: a retried request must not act a second time on a job that moved on."""
    job_id = cancelled_job(store)
    operation = _requeue(job_id)
    store.perform_sync(operation)
    cancel(store, job_id)
    (again,) = store.perform_sync(operation)
    assert (again.effect, again.state) == (Effect.DONE, JobState.READY)
    assert state_of(store, job_id) is JobState.CANCELLED


def test_an_action_id_cannot_name_two_kinds_of_action(store: Store) -> None:
    """L1."""
    job_id = enqueue_one(store)
    first = Cancel(job_ids=(job_id,), actor=MILLER, action=fresh_action())
    store.perform_sync(first)
    with pytest.raises(ActionIdReused):
        store.perform_sync(Requeue(job_ids=(job_id,), actor=MILLER, action=first.action))
    assert state_of(store, job_id) is JobState.CANCELLED


def test_an_action_id_cannot_name_another_job(store: Store) -> None:
    """L1: an answer about the first job would pass for one about the second."""
    job_id, other = enqueue_one(store), enqueue_one(store)
    first = Cancel(job_ids=(job_id,), actor=MILLER, action=fresh_action())
    answer = store.perform_sync(first)
    for named in ((other,), (job_id, other), ()):
        with pytest.raises(ActionIdReused, match=str(job_id)):
            store.perform_sync(replace(first, job_ids=named))
    assert state_of(store, other) is JobState.READY
    assert store.perform_sync(first) == answer


def test_a_rerun_asked_for_again_is_the_first_one_whatever_new_id_it_brings(store: Store) -> None:
    """L1."""
    ended, other = dead_job(store), dead_job(store)
    first = Rerun(job_id=ended, new_id=fresh_job_id(), actor=MILLER, action=fresh_action())
    answer = store.perform_sync(first)
    assert store.perform_sync(replace(first, new_id=fresh_job_id())) == answer
    with pytest.raises(ActionIdReused):
        store.perform_sync(replace(first, job_id=other))


@pytest.mark.parametrize("actor", ["", "a\0b", "\ud800"])
def test_an_actor_that_no_database_holds_is_refused(store: Store, actor: str) -> None:
    """L1, F5."""
    job_id = enqueue_one(store)
    with pytest.raises(InvalidValue):
        cancel(store, job_id, actor=actor)
    assert state_of(store, job_id) is JobState.READY


def test_a_refused_rerun_leaves_its_action_id_free(store: Store) -> None:
    """L1: nothing was written."""
    ended = dead_job(store)
    refused = Rerun(job_id=ended, new_id=enqueue_one(store), actor=MILLER, action=fresh_action())
    with pytest.raises(JobIdConflict):
        store.perform_sync(refused)
    allowed = replace(refused, new_id=fresh_job_id())
    assert store.perform_sync(allowed).effect is Effect.DONE
    assert store.perform_sync(GetJob(allowed.new_id)) is not None
