"""Claim: what is handed out, in which order, and what is set aside (clauses C1–C4, J3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tidemill.conformance.scenes import (
    GRIND,
    LEASE,
    MICROSECOND,
    SECOND,
    beat,
    cancel,
    claim,
    claim_one,
    details,
    enqueue,
    enqueue_one,
    exchange,
    fresh_job_id,
    maintain,
    new_job,
    register,
    request,
    start,
    state_of,
    worker_info,
)
from tidemill.core.claim import MOST_ACTIVATED, MOST_SET_ASIDE
from tidemill.errors import WorkerIdUsed
from tidemill.store.contract import Store
from tidemill.store.lease import Deregister, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import ListWorkers
from tidemill.values.exchange import Share
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.states import Held, JobState

KNOWN = frozenset({GRIND})


def ids(jobs: tuple[Claimed, ...]) -> list[JobId]:
    """The ids of claimed jobs, in order."""
    return [job.id for job in jobs]


def fill(store: Store, queue: str, count: int) -> list[JobId]:
    """Put plain jobs on a queue."""
    return [enqueue_one(store, queue=queue) for _ in range(count)]


def test_two_claims_never_share_a_job(store: Store) -> None:
    """C1."""
    jobs = fill(store, "default", 20)
    workers = [register(store), register(store)]
    claimed = [job.id for turn in range(8) for job in claim(store, workers[turn % 2], 3)]
    assert sorted(claimed) == jobs


def test_a_claim_returns_at_most_the_asked_number(store: Store) -> None:
    """C2."""
    jobs = fill(store, "default", 5)
    worker = register(store)
    assert ids(claim(store, worker, 3)) == jobs[:3]
    assert ids(claim(store, worker, 3)) == jobs[3:]
    assert claim(store, worker, 3) == ()


def test_a_claim_returns_only_jobs_of_the_asked_queues(store: Store) -> None:
    """C2."""
    fill(store, "other", 2)
    wanted = fill(store, "stones", 1)
    assert ids(claim(store, register(store), 9, Share("stones", 9))) == wanted


def test_within_a_queue_priority_comes_first_then_the_due_instant_then_the_id(
    store: Store, clock: VirtualClock
) -> None:
    """C2."""
    now = clock()
    low = new_job(priority=-1, due_at=now - 9 * SECOND)
    late = new_job(due_at=now)
    twin = new_job(due_at=now - SECOND)
    early = new_job(due_at=now - SECOND - MICROSECOND)
    second_twin = new_job(due_at=now - SECOND)
    high = new_job(priority=7, due_at=now)
    enqueue(store, second_twin, low, late, high, early, twin)
    line = [high, early, twin, second_twin, late, low]
    assert ids(claim(store, register(store), 9)) == [job.id for job in line]


def test_each_queue_is_given_its_share_first(store: Store) -> None:
    """C2, J5."""
    first, second = fill(store, "a", 9), fill(store, "b", 9)
    claimed = claim(store, register(store), 5, Share("b", 2), Share("a", 3))
    assert ids(claimed) == [*second[:2], *first[:3]]


def test_room_that_a_queue_leaves_is_filled_from_the_others(store: Store) -> None:
    """C2, J5: work is conserved, also by a queue whose share is nothing."""
    first, second, third = fill(store, "a", 1), fill(store, "b", 9), fill(store, "c", 9)
    shares = (Share("a", 4), Share("b", 2), Share("c", 0))
    assert ids(claim(store, register(store), 6, *shares)) == [*first, *second[:5]]
    assert ids(claim(store, register(store), 6, *shares)) == [*second[5:], *third[:2]]


def test_a_first_queue_with_every_share_may_take_all(store: Store) -> None:
    """C2, J5: strict order."""
    first, second = fill(store, "a", 3), fill(store, "b", 3)
    shares = (Share("a", 4), Share("b", 4))
    assert ids(claim(store, register(store), 4, *shares)) == [*first, second[0]]


def test_a_claim_stamps_the_worker_the_attempt_and_the_start(
    store: Store, clock: VirtualClock
) -> None:
    """C3, A4."""
    job_id = enqueue_one(store)
    clock.advance(SECOND)
    worker = register(store)
    job = claim_one(store, worker)
    assert (job.worker, job.attempt, job.started_at) == (worker, 1, clock())
    record = details(store, job_id).record
    assert record.state is JobState.RUNNING
    assert (record.worker, record.attempt, record.started_at) == (worker, 1, clock())
    assert record.finished_at is None


@pytest.mark.parametrize("delay", [SECOND, timedelta(days=400)])
def test_a_scheduled_job_is_claimed_at_its_due_instant_and_not_before(
    store: Store, clock: VirtualClock, delay: timedelta
) -> None:
    """C2, A1."""
    job_id = enqueue_one(store, delay=delay)
    clock.advance(delay - MICROSECOND)
    assert claim(store, register(store)) == ()
    assert state_of(store, job_id) is JobState.SCHEDULED
    clock.advance(MICROSECOND)
    assert ids(claim(store, register(store))) == [job_id]


def test_a_claim_says_how_long_until_the_next_scheduled_job_of_its_queues(
    store: Store,
) -> None:
    """C2."""
    worker = register(store)
    enqueue_one(store, delay=9 * SECOND)
    enqueue_one(store, delay=5 * SECOND)
    enqueue_one(store, delay=SECOND, queue="other")
    assert exchange(store, worker, claim=request()).next_due == 5 * SECOND
    both = request(1, Share("default", 1), Share("other", 0))
    assert exchange(store, worker, claim=both).next_due == SECOND
    assert exchange(store, worker, claim=request(1, Share("empty", 1))).next_due is None
    assert exchange(store, worker).next_due is None


def test_terminal_running_and_scheduled_jobs_are_not_claimed(store: Store) -> None:
    """C2."""
    worker = register(store)
    start(store, worker)
    cancel(store, enqueue_one(store))
    enqueue_one(store, delay=SECOND)
    assert claim(store, worker, 9) == ()


def test_a_dead_lease_claims_nothing(store: Store, clock: VirtualClock) -> None:
    """C4, C5: not at its expiry instant either."""
    worker = register(store)
    job_id = enqueue_one(store)
    clock.advance(LEASE)
    answered = exchange(store, worker, claim=request())
    assert (answered.live, answered.claimed) == (False, ())
    assert state_of(store, job_id) is JobState.READY
    assert details(store, job_id).record.attempt == 0


def test_a_lease_claims_until_its_last_microsecond(store: Store, clock: VirtualClock) -> None:
    """C4."""
    worker = register(store)
    job_id = enqueue_one(store)
    clock.advance(LEASE - MICROSECOND)
    answered = exchange(store, worker, claim=request())
    assert answered.live
    assert ids(answered.claimed) == [job_id]
    assert (answered.worker, answered.now) == (worker, clock())


def test_a_worker_that_lapsed_claims_nothing_even_when_the_clock_steps_back(
    store: Store, clock: VirtualClock
) -> None:
    """C4, A3."""
    worker = register(store)
    enqueue_one(store)
    clock.advance(LEASE)
    beat(store, worker)
    clock.advance(-LEASE)
    answered = exchange(store, worker, claim=request())
    assert (answered.live, answered.claimed) == (False, ())


def test_an_unknown_worker_claims_nothing(store: Store) -> None:
    """C4."""
    enqueue_one(store)
    answered = exchange(store, WorkerId(fresh_job_id()), claim=request())
    assert (answered.live, answered.claimed) == (False, ())


def test_a_worker_that_was_deregistered_claims_nothing(store: Store) -> None:
    """C4, A3."""
    worker = register(store)
    enqueue_one(store)
    store.perform_sync(Deregister(worker))
    answered = exchange(store, worker, claim=request())
    assert (answered.live, answered.claimed) == (False, ())


def test_a_job_whose_wire_name_is_unknown_is_held_and_takes_no_room(store: Store) -> None:
    """J3: still `ready` in every view, out of the claim's way."""
    unknown = [enqueue_one(store, wire_name="mill.sift") for _ in range(3)]
    known = enqueue_one(store)
    worker = register(store)
    assert ids(claim(store, worker, 1, wire_names=KNOWN)) == [known]
    for job_id in unknown:
        record = details(store, job_id).record
        assert (record.state, record.held) == (JobState.READY, Held.UNKNOWN_WIRE_NAME)
        assert (record.attempt, record.worker) == (0, None)
    assert claim(store, worker, 9, wire_names=None) == ()


def test_a_claim_without_wire_names_takes_whatever_is_there(store: Store) -> None:
    """J3."""
    job_id = enqueue_one(store, wire_name="mill.sift")
    assert ids(claim(store, register(store), wire_names=None)) == [job_id]


def test_a_worker_that_registers_a_name_releases_the_jobs_held_for_it(store: Store) -> None:
    """J3."""
    sift = enqueue_one(store, wire_name="mill.sift")
    weigh = enqueue_one(store, wire_name="mill.weigh")
    claim(store, register(store), 9, wire_names=KNOWN)
    sifter = register(store, wire_names=frozenset({"mill.sift"}))
    assert details(store, sift).record.held is None
    assert details(store, weigh).record.held is Held.UNKNOWN_WIRE_NAME
    assert ids(claim(store, sifter, 9, wire_names=frozenset({"mill.sift"}))) == [sift]


def test_maintenance_releases_held_jobs_that_a_live_worker_knows(store: Store) -> None:
    """J3."""
    names = frozenset({"mill.sift"})
    register(store, wire_names=names)
    held = [enqueue_one(store, wire_name="mill.sift") for _ in range(3)]
    claim(store, register(store), 9, wire_names=KNOWN)
    rounds = [maintain(store, limit=2) for _ in range(2)]
    assert [(done.unheld, done.more) for done in rounds] == [(2, True), (1, False)]
    assert {details(store, job_id).record.held for job_id in held} == {None}


def test_maintenance_leaves_jobs_held_that_only_a_lapsed_worker_knows(
    store: Store, clock: VirtualClock
) -> None:
    """J3."""
    register(store, wire_names=frozenset({"mill.sift"}))
    clock.advance(LEASE)
    held = enqueue_one(store, wire_name="mill.sift")
    claim(store, register(store), 9, wire_names=KNOWN)
    assert maintain(store).unheld == 0
    assert details(store, held).record.held is Held.UNKNOWN_WIRE_NAME


def test_a_worker_that_claims_every_name_releases_whatever_is_held(store: Store) -> None:
    """J3: it quarantines what it does not know, so nothing waits for anyone else."""
    held = [enqueue_one(store, wire_name=name) for name in ("mill.sift", "mill.weigh")]
    claim(store, register(store), 9, wire_names=KNOWN)
    quarantiner = register(store, wire_names=None)
    assert {details(store, job_id).record.held for job_id in held} == {None}
    assert ids(claim(store, quarantiner, 9)) == held


def test_maintenance_releases_whatever_is_held_while_a_live_worker_claims_every_name(
    store: Store, clock: VirtualClock
) -> None:
    """J3."""
    register(store, wire_names=None)
    held = [enqueue_one(store, wire_name=f"mill.{n}") for n in range(3)]
    claim(store, register(store), 9, wire_names=KNOWN)
    assert [maintain(store, limit=2).unheld for _ in range(2)] == [2, 1]
    assert {details(store, job_id).record.held for job_id in held} == {None}
    clock.advance(LEASE)
    claim(store, register(store), 9, wire_names=KNOWN)
    assert maintain(store).unheld == 0


def test_the_registration_of_a_worker_that_claims_every_name_may_be_repeated(
    store: Store,
) -> None:
    """A3, J3: and it is listed as one that does."""
    info = worker_info(wire_names=None)
    for _ in range(2):
        store.perform_sync(Register(info=info, lease=LEASE))
    with pytest.raises(WorkerIdUsed):
        store.perform_sync(Register(info=replace(info, wire_names=KNOWN), lease=LEASE))
    (row,) = store.perform_sync(ListWorkers())
    assert row.wire_names is None


def test_one_claim_makes_a_bounded_number_of_due_jobs_ready_longest_due_first(
    store: Store, clock: VirtualClock
) -> None:
    """C2, J3: what is left is ready with the next claim, and a worker is told to come at once."""
    now = clock()
    urgent = new_job(priority=9, due_at=now + 2 * SECOND)
    crowd = [new_job(due_at=now + SECOND) for _ in range(MOST_ACTIVATED + 1)]
    enqueue(store, urgent, *reversed(crowd))
    clock.advance(2 * SECOND)
    worker = register(store)
    answered = exchange(store, worker, claim=request(2))
    assert ids(answered.claimed) == [crowd[0].id, crowd[1].id]
    assert answered.next_due == timedelta(0)
    left = [job.id for job in (urgent, *crowd) if state_of(store, job.id) is JobState.SCHEDULED]
    assert left == [urgent.id, crowd[-1].id]
    answered = exchange(store, worker, claim=request(2))
    assert ids(answered.claimed) == [urgent.id, crowd[2].id]
    assert answered.next_due is None


def test_one_claim_sets_a_bounded_number_of_jobs_aside_and_says_to_come_again(
    store: Store,
) -> None:
    """J3."""
    unknown = [new_job(wire_name="mill.sift") for _ in range(MOST_SET_ASIDE + 1)]
    known = new_job()
    enqueue(store, *unknown, known)
    worker = register(store)
    first = exchange(store, worker, claim=request(600, wire_names=KNOWN))
    assert (first.claimed, first.next_due) == ((), timedelta(0))
    assert details(store, unknown[-1].id).record.held is None
    second = exchange(store, worker, claim=request(600, wire_names=KNOWN))
    assert (ids(second.claimed), second.next_due) == ([known.id], None)


def test_a_held_job_can_be_cancelled(store: Store) -> None:
    """G1, J3."""
    held = enqueue_one(store, wire_name="mill.sift")
    claim(store, register(store), 9, wire_names=KNOWN)
    cancel(store, held)
    record = details(store, held).record
    assert (record.state, record.held) == (JobState.CANCELLED, None)
