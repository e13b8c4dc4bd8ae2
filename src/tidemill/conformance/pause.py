"""Pausing a queue: nothing is claimed from it, and everything else goes on (clauses C2, J4, L1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemill.conformance.scenes import (
    GRIND,
    MICROSECOND,
    MILLER,
    SECOND,
    cancel,
    claim,
    claim_one,
    enqueue_one,
    exchange,
    fresh_action,
    maintain,
    pause,
    register,
    report,
    request,
    resume,
    run_now,
    start,
    state_of,
)
from tidemill.errors import ActionIdReused, BoundExceeded, InvalidValue
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs, ListQueues
from tidemill.store.operators import Cancel, PauseQueue
from tidemill.values.exchange import Share
from tidemill.values.monitor import QueueRecord
from tidemill.values.operators import Effect, QueueResult
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.states import JobState


def test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed(store: Store) -> None:
    """C2, J4."""
    worker = register(store)
    job_id = enqueue_one(store)
    assert pause(store) == QueueResult(queue="default", effect=Effect.DONE, paused=True)
    assert claim(store, worker) == ()
    assert state_of(store, job_id) is JobState.READY
    assert resume(store) == QueueResult(queue="default", effect=Effect.DONE, paused=False)
    assert claim_one(store, worker).id == job_id


def test_other_queues_fill_the_room_that_a_paused_one_leaves(store: Store) -> None:
    """C2, J4, J5."""
    enqueue_one(store, queue="a")
    others = [enqueue_one(store, queue="b") for _ in range(3)]
    pause(store, "a")
    claimed = claim(store, register(store), 3, Share("a", 2), Share("b", 1))
    assert [job.id for job in claimed] == others


def test_running_attempts_of_a_paused_queue_go_on(store: Store) -> None:
    """J4."""
    job = start(store, register(store))
    pause(store)
    assert report(store, job, Verdict.SUCCEEDED, output=b"1").answer is Answer.APPLIED


def test_an_attempt_that_fails_under_a_pause_waits_for_its_end(store: Store) -> None:
    """J4, E2."""
    worker = register(store)
    job = start(store, worker)
    pause(store)
    report(store, job, Verdict.RELEASED)
    assert claim(store, worker) == ()
    resume(store)
    assert claim_one(store, worker).attempt == job.attempt + 1


def test_a_paused_queue_says_no_next_due_instant_and_makes_nothing_ready(
    store: Store, clock: VirtualClock
) -> None:
    """J4: or a worker would come back at once, again and again."""
    worker = register(store)
    later = enqueue_one(store, delay=SECOND)
    enqueue_one(store, delay=9 * SECOND, queue="other")
    pause(store)
    both = request(1, Share("default", 1), Share("other", 1))
    assert exchange(store, worker, claim=request()).next_due is None
    assert exchange(store, worker, claim=both).next_due == 9 * SECOND
    clock.advance(SECOND + MICROSECOND)
    assert exchange(store, worker, claim=request()).next_due is None
    assert state_of(store, later) is JobState.SCHEDULED
    resume(store)
    assert claim_one(store, worker).id == later


def test_jobs_of_a_paused_queue_are_stored_cancelled_expired_and_run_now_as_ever(
    store: Store, clock: VirtualClock
) -> None:
    """J4: a pause is about claims alone."""
    pause(store)
    kept, dropped = enqueue_one(store), enqueue_one(store)
    late = enqueue_one(store, not_after=clock() + SECOND)
    soon = enqueue_one(store, delay=SECOND)
    cancel(store, dropped)
    run_now(store, soon)
    clock.advance(SECOND)
    assert maintain(store).expired == 1
    states = [state_of(store, job_id) for job_id in (kept, dropped, late, soon)]
    assert states == [JobState.READY, JobState.CANCELLED, JobState.CANCELLED, JobState.READY]


def test_a_queue_may_be_paused_before_it_has_jobs(store: Store) -> None:
    """J4."""
    pause(store, "stones")
    enqueue_one(store, queue="stones")
    assert claim(store, register(store), 1, Share("stones", 1)) == ()


def test_pausing_what_is_paused_changes_nothing_and_says_so(store: Store) -> None:
    """L1."""
    assert resume(store).effect is Effect.UNCHANGED
    pause(store)
    assert pause(store) == QueueResult(queue="default", effect=Effect.UNCHANGED, paused=True)


def test_the_same_pause_again_does_not_undo_what_came_after_it(store: Store) -> None:
    """L1: a retried request must not act a second time."""
    first = PauseQueue(queue="default", paused=True, actor=MILLER, action=fresh_action())
    answered = store.perform_sync(first)
    resume(store)
    assert store.perform_sync(first) == answered
    job_id = enqueue_one(store)
    assert claim_one(store, register(store)).id == job_id


def test_the_id_of_a_pause_names_no_other_kind_of_action(store: Store) -> None:
    """L1."""
    job_id = enqueue_one(store)
    action = fresh_action()
    store.perform_sync(PauseQueue(queue="default", paused=True, actor=MILLER, action=action))
    with pytest.raises(InvalidValue):
        store.perform_sync(Cancel(job_ids=(job_id,), actor=MILLER, action=action))
    other = fresh_action()
    store.perform_sync(Cancel(job_ids=(job_id,), actor=MILLER, action=other))
    with pytest.raises(InvalidValue):
        store.perform_sync(PauseQueue(queue="default", paused=False, actor=MILLER, action=other))
    assert store.perform_sync(ListQueues()) == (QueueRecord(queue="default", paused=True),)


def test_the_id_of_a_pause_names_neither_its_resumption_nor_another_queue(store: Store) -> None:
    """L1."""
    first = PauseQueue(queue="default", paused=True, actor=MILLER, action=fresh_action())
    answer = store.perform_sync(first)
    for other in (replace(first, paused=False), replace(first, queue="other")):
        with pytest.raises(ActionIdReused):
            store.perform_sync(other)
    assert store.perform_sync(first) == answer
    assert store.perform_sync(ListQueues()) == (QueueRecord(queue="default", paused=True),)


@pytest.mark.parametrize("wrong", [{"queue": ""}, {"queue": "a\0"}, {"actor": ""}])
def test_a_pause_that_no_database_holds_is_refused(store: Store, wrong: dict[str, str]) -> None:
    """L1, F5."""
    wish = {"queue": "default", "actor": MILLER} | wrong
    with pytest.raises(InvalidValue):
        store.perform_sync(PauseQueue(**wish, paused=True, action=fresh_action()))
    with pytest.raises(BoundExceeded):
        pause(store, "q" * (store.bounds.name_bytes + 1))
    assert store.perform_sync(ListQueues()) == ()


def test_queues_are_listed_by_name_with_their_pause_and_what_is_on_its_way(store: Store) -> None:
    """L2, J3."""
    worker = register(store)
    start(store, worker, queue="default")
    report(store, start(store, worker), Verdict.SUCCEEDED)
    enqueue_one(store, wire_name="mill.sift")
    claim(store, worker, wire_names=frozenset({GRIND}))
    for _ in range(2):
        enqueue_one(store)
    enqueue_one(store, delay=SECOND)
    enqueue_one(store, queue="stones", delay=SECOND)
    pause(store, "empty")
    pause(store, "stones")
    resume(store, "once")
    assert store.perform_sync(ListQueues()) == (
        QueueRecord(queue="default", paused=False, ready=2, held=1, scheduled=1, running=1),
        QueueRecord(queue="empty", paused=True),
        QueueRecord(queue="stones", paused=True, scheduled=1),
    )


def test_a_queue_whose_jobs_have_all_ended_is_not_listed(store: Store) -> None:
    """L2: counting what has ended is what `CountJobs` is for."""
    report(store, start(store, register(store)), Verdict.SUCCEEDED)
    pause(store)
    resume(store)
    assert store.perform_sync(ListQueues()) == ()
    assert len(store.perform_sync(CountJobs())) == 1
