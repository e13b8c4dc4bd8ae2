"""The doctor's reads: who works, what waits for whom, what should have ended (clauses L2, L3)."""

from __future__ import annotations

from datetime import timedelta

from tidemill.conformance.endstates import dead_job, quarantined_job, succeeded_job
from tidemill.conformance.scenes import (
    GRIND,
    LEASE,
    SECOND,
    beat,
    claim,
    details,
    enqueue_one,
    lapse,
    pause,
    register,
    start,
)
from tidemill.store.complete import Complete
from tidemill.store.contract import Store
from tidemill.store.doctor import (
    ExamineBacklog,
    ExamineDeadLetters,
    ExamineNames,
    ExamineStuck,
    ExamineWorkers,
    ReadClock,
)
from tidemill.store.lease import Deregister
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import ListWorkers
from tidemill.values.doctor import StuckWork, Waiting, WaitingName
from tidemill.values.states import JobState

MINUTE = timedelta(minutes=1)


def stuck(store: Store, limit: int = 5) -> StuckWork:
    """The jobs that should have ended."""
    return store.perform_sync(ExamineStuck(limit=limit))


def test_the_doctor_reads_the_stores_time(store: Store, clock: VirtualClock) -> None:
    """A1, L2."""
    clock.advance(SECOND)
    assert store.perform_sync(ReadClock()) == clock()


def test_the_doctor_sees_live_workers_as_the_monitor_does(
    store: Store, clock: VirtualClock
) -> None:
    """L2."""
    register(store, lease=LEASE * 2)
    clock.advance(SECOND)
    start(store, register(store))
    found = store.perform_sync(ExamineWorkers())
    assert [each.record for each in found.workers] == list(store.perform_sync(ListWorkers()))[::-1]
    assert [each.lease for each in found.workers] == [LEASE, LEASE * 2]
    assert (found.now, found.more) == (clock(), False)


def test_the_doctor_sees_how_long_the_last_heartbeat_lasts(store: Store) -> None:
    """C4, L2."""
    worker = register(store)
    beat(store, worker, LEASE * 3)
    (found,) = store.perform_sync(ExamineWorkers()).workers
    assert found.lease == LEASE * 3


def test_the_doctor_sees_those_who_lapsed_lately_after_those_who_live(
    store: Store, clock: VirtualClock
) -> None:
    """L2."""
    lapsed = register(store)
    gone = register(store)
    store.perform_sync(Deregister(gone))
    lapse(store, clock)
    live = register(store)
    found = store.perform_sync(ExamineWorkers()).workers
    assert [each.record.id for each in found] == [live, lapsed]
    assert [each.record.live for each in found] == [True, False]
    clock.advance(timedelta(hours=1))
    beat(store, live)
    found = store.perform_sync(ExamineWorkers()).workers
    assert [each.record.id for each in found] == [live]


def test_the_doctor_says_that_there_are_more_workers_than_it_was_to_show(store: Store) -> None:
    """L2."""
    register(store)
    register(store)
    found = store.perform_sync(ExamineWorkers(limit=1))
    assert (len(found.workers), found.more) == (1, True)


def test_the_backlog_is_what_could_run_by_queue(store: Store, clock: VirtualClock) -> None:
    """L2, L3."""
    began = clock()
    enqueue_one(store, queue="stones", delay=SECOND)
    enqueue_one(store, queue="later", delay=timedelta(days=1))
    clock.advance(MINUTE)
    enqueue_one(store, queue="stones")
    enqueue_one(store, queue="flour")
    pause(store, "flour")
    start(store, register(store))
    found = store.perform_sync(ExamineBacklog())
    assert (found.now, found.more) == (clock(), False)
    shown = [(each.queue, each.paused, each.ready, each.due) for each in found.queues]
    assert shown == [("stones", False, 1, 1), ("flour", True, 1, 0)]
    assert [each.oldest_due_at for each in found.queues] == [began + SECOND, clock()]


def test_the_backlog_shows_the_longest_queues_and_that_there_are_more(store: Store) -> None:
    """L2."""
    for queue in ("a", "b", "b", "c"):
        enqueue_one(store, queue=queue)
    found = store.perform_sync(ExamineBacklog(limit=2))
    assert ([each.queue for each in found.queues], found.more) == (["b", "a"], True)


def test_what_runs_under_a_worker_that_ended_a_lease_ago_is_abandoned(
    store: Store, clock: VirtualClock
) -> None:
    """C6, L3: a sweep should have found it by then."""
    worker = register(store)
    job = start(store, worker)
    ends = clock.advance(LEASE)
    assert stuck(store).abandoned.count == 0
    clock.advance(LEASE)
    (found,) = stuck(store).abandoned.jobs
    assert (found.id, found.attempt, found.worker, found.since) == (job.id, 1, worker, ends)
    assert (found.wire_name, found.queue) == (GRIND, "default")


def test_stuck_jobs_are_shown_up_to_a_limit_and_counted_beyond_it(
    store: Store, clock: VirtualClock
) -> None:
    """L2, L3."""
    worker = register(store)
    first = start(store, worker)
    start(store, worker)
    clock.advance(LEASE * 2)
    found = stuck(store, limit=1)
    assert ([job.id for job in found.abandoned.jobs], found.abandoned.count) == ([first.id], 2)


def test_what_runs_well_beyond_its_timeout_is_overdue(store: Store, clock: VirtualClock) -> None:
    """L3."""
    worker = register(store, lease=MINUTE * 10)
    start(store, worker)
    job = start(store, worker, timeout=SECOND)
    clock.advance(MINUTE)
    assert stuck(store).overdue.count == 0
    clock.advance(SECOND)
    found = stuck(store)
    (overdue,) = found.overdue.jobs
    assert (overdue.id, overdue.since) == (job.id, job.started_at + SECOND)
    assert found.abandoned.count == found.unsettled.count == 0


def test_what_was_completed_and_not_settled_for_long_is_told(
    store: Store, clock: VirtualClock
) -> None:
    """D8, L3."""
    worker = register(store)
    job = start(store, worker)
    store.perform_sync(Complete(job_id=job.id, attempt=job.attempt, worker=worker))
    ended = clock()
    clock.advance(SECOND)
    assert stuck(store).unsettled.count == 0
    clock.advance(MINUTE)
    (found,) = stuck(store).unsettled.jobs
    assert (found.id, found.since) == (job.id, ended)


def test_waiting_names_are_counted_by_queue_and_by_how_they_wait(store: Store) -> None:
    """J3, L3."""
    for _ in range(3):
        enqueue_one(store, wire_name="mill.sift")
    claim(store, register(store), 3, wire_names=frozenset())
    enqueue_one(store, queue="stones")
    enqueue_one(store, queue="stones", delay=SECOND)
    dead_job(store)
    assert store.perform_sync(ExamineNames()) == (
        WaitingName("default", "mill.sift", Waiting.HELD, 3),
        WaitingName("stones", GRIND, Waiting.READY, 1),
        WaitingName("stones", GRIND, Waiting.SCHEDULED, 1),
    )
    first = store.perform_sync(ExamineNames(limit=2))
    assert [each.count for each in first] == [3, 1]
    assert store.perform_sync(ExamineNames(sample=1))[0].count == 1


def test_dead_letters_are_grouped_and_counted_among_the_newest_jobs(store: Store) -> None:
    """L2."""
    oldest = dead_job(store)
    dead_job(store)
    succeeded_job(store)
    quarantined = quarantined_job(store)
    found = store.perform_sync(ExamineDeadLetters())
    assert (found.dead, found.quarantined) == (2, 1)
    dead, lost = found.groups
    record = details(store, oldest).record
    assert (dead.state, dead.count, dead.cause) == (JobState.DEAD, 2, record.cause)
    assert (dead.wire_name, dead.newest_at) == (GRIND, record.finished_at)
    assert lost.state is JobState.QUARANTINED
    assert lost.cause == details(store, quarantined).record.cause
    short = store.perform_sync(ExamineDeadLetters(limit=1))
    assert (len(short.groups), short.dead, short.quarantined) == (1, 2, 1)
    assert (short.kinds, short.last_at) == (2, lost.newest_at)
    fewer = store.perform_sync(ExamineDeadLetters(newest=3))
    assert (fewer.dead, fewer.newest) == (1, 3)


def test_an_empty_store_has_nothing_to_find(store: Store) -> None:
    """L2."""
    assert store.perform_sync(ExamineWorkers()).workers == ()
    assert store.perform_sync(ExamineBacklog()).queues == ()
    assert store.perform_sync(ExamineNames()) == ()
    letters = store.perform_sync(ExamineDeadLetters())
    assert (letters.groups, letters.kinds, letters.last_at) == ((), 0, None)
    assert stuck(store).abandoned.jobs == stuck(store).overdue.jobs == ()


def test_a_database_tells_its_time_its_version_and_that_its_schema_fits(
    store: Store, clock: VirtualClock
) -> None:
    """M2."""
    found = store.examine()
    with store.looking() as look:
        assert found.now == look.perform(ReadClock()) == clock()
    assert found.schema.fits
    assert found.product == store.capabilities.name
    assert found.place
