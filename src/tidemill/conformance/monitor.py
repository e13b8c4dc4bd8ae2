"""The monitor: single jobs, pages, counts and workers (clause L2)."""

from __future__ import annotations

import pytest

from tidemill.conformance.endstates import ENDED, dead_job, succeeded_job
from tidemill.conformance.scenes import (
    LEASE,
    SECOND,
    cancel,
    claim,
    details,
    enqueue_one,
    fresh_job_id,
    register,
    report,
    start,
    worker_info,
)
from tidemill.errors import InvalidValue
from tidemill.store.contract import Store
from tidemill.store.lease import Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs, GetEnd, GetJob, ListJobs, ListWorkers
from tidemill.values.ids import JobId
from tidemill.values.monitor import JobEnd, JobFilter, QueueCount, WorkerRecord
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState


def pages(store: Store, limit: int, where: JobFilter | None = None) -> list[list[JobId]]:
    """Every page of a list, from the first to the last."""
    found: list[list[JobId]] = []
    cursor: str | None = None
    while True:
        page = store.perform_sync(ListJobs(where=where or JobFilter(), cursor=cursor, limit=limit))
        found.append([job.id for job in page.jobs])
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_an_unknown_job_is_none(store: Store) -> None:
    """L2."""
    assert store.perform_sync(GetJob(fresh_job_id())) is None
    assert store.perform_sync(GetEnd(fresh_job_id())) is None


@pytest.mark.parametrize("state", ENDED)
def test_the_end_of_a_job_has_an_output_only_when_it_succeeded(
    store: Store, state: JobState
) -> None:
    """L2, K2."""
    job_id = ENDED[state](store)
    cause = details(store, job_id).record.cause
    output = b'"flour"' if state is JobState.SUCCEEDED else None
    end = JobEnd(state=state, cause=cause, output=output)
    assert store.perform_sync(GetEnd(job_id)) == end


def test_the_end_of_a_job_that_has_not_ended_says_where_it_stands(store: Store) -> None:
    """L2."""
    job_id = enqueue_one(store)
    end = JobEnd(state=JobState.READY, cause=None, output=None)
    assert store.perform_sync(GetEnd(job_id)) == end


def test_a_list_is_paged_newest_first_with_every_job_once(store: Store) -> None:
    """L2."""
    ids = [enqueue_one(store) for _ in range(7)]
    newest = ids[::-1]
    assert pages(store, 3) == [newest[:3], newest[3:6], newest[6:]]
    assert pages(store, 7) == [newest]


def test_an_empty_list_is_one_empty_page(store: Store) -> None:
    """L2."""
    assert pages(store, 5) == [[]]


def test_pages_are_stable_while_jobs_are_added_and_change(store: Store) -> None:
    """L2."""
    ids = [enqueue_one(store) for _ in range(6)]
    first = store.perform_sync(ListJobs(limit=3))
    enqueue_one(store)
    cancel(store, ids[0], ids[5])
    rest = store.perform_sync(ListJobs(limit=3, cursor=first.next_cursor))
    assert [job.id for job in (*first.jobs, *rest.jobs)] == ids[::-1]
    assert rest.next_cursor is None


def test_a_list_shows_the_records_that_details_show(store: Store) -> None:
    """L2."""
    expected = {make(store) for make in ENDED.values()}
    page = store.perform_sync(ListJobs())
    assert {job.id for job in page.jobs} == expected
    for job in page.jobs:
        assert job == details(store, job.id).record


def test_a_filter_narrows_by_state_queue_and_wire_name_together(store: Store) -> None:
    """L2."""
    plain = enqueue_one(store)
    queued = enqueue_one(store, queue="stones")
    named = enqueue_one(store, wire_name="mill.sift")
    both = enqueue_one(store, queue="stones", wire_name="mill.sift")
    later = enqueue_one(store, queue="stones", delay=SECOND)
    ready = frozenset({JobState.READY})

    def shown(where: JobFilter) -> set[JobId]:
        return {job_id for page in pages(store, 2, where) for job_id in page}

    assert shown(JobFilter()) == {plain, queued, named, both, later}
    assert shown(JobFilter(queue="stones")) == {queued, both, later}
    assert shown(JobFilter(wire_name="mill.sift")) == {named, both}
    assert shown(JobFilter(states=ready, queue="stones")) == {queued, both}
    assert shown(JobFilter(states=ready, queue="stones", wire_name="mill.sift")) == {both}
    every_live = frozenset({JobState.READY, JobState.SCHEDULED})
    assert shown(JobFilter(states=every_live)) == {plain, queued, named, both, later}
    assert shown(JobFilter(states=frozenset({JobState.DEAD}))) == set()


@pytest.mark.parametrize("cursor", ["nonsense", "", "é", "AAAA", "A" * 4_000])
def test_a_cursor_that_no_page_gave_is_refused(store: Store, cursor: str) -> None:
    """L2."""
    with pytest.raises(InvalidValue):
        store.perform_sync(ListJobs(cursor=cursor))


def test_a_large_limit_is_clamped_to_the_page_size(store: Store) -> None:
    """L2."""
    size = store.bounds.page_size
    for _ in range(size + 1):
        enqueue_one(store)
    page = store.perform_sync(ListJobs(limit=10**9))
    assert len(page.jobs) == size
    assert page.next_cursor is not None


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_shows_one(store: Store, limit: int) -> None:
    """L2."""
    enqueue_one(store)
    assert len(store.perform_sync(ListJobs(limit=limit)).jobs) == 1


def test_counts_are_by_queue_and_state(store: Store) -> None:
    """L2."""
    succeeded_job(store)
    dead_job(store)
    for _ in range(3):
        enqueue_one(store, queue="stones")
    enqueue_one(store, queue="stones", delay=SECOND)
    enqueue_one(store, wire_name="mill.sift")
    claim(store, register(store), 1, wire_names=frozenset())
    assert set(store.perform_sync(CountJobs())) == {
        QueueCount("default", JobState.SUCCEEDED, 1),
        QueueCount("default", JobState.DEAD, 1),
        QueueCount("default", JobState.READY, 1),
        QueueCount("stones", JobState.READY, 3),
        QueueCount("stones", JobState.SCHEDULED, 1),
    }


def test_an_empty_store_counts_nothing(store: Store) -> None:
    """L2."""
    assert store.perform_sync(CountJobs()) == ()


def test_workers_are_listed_oldest_first_with_what_they_run(
    store: Store, clock: VirtualClock
) -> None:
    """L2."""
    older = worker_info(queues=("a", "b"), wire_names=frozenset({"x", "y"}), slots=3)
    started = clock()
    store.perform_sync(Register(info=older, lease=LEASE))
    clock.advance(SECOND)
    newer = register(store)
    start(store, newer)
    report(store, start(store, newer), Verdict.SUCCEEDED)
    first, second = store.perform_sync(ListWorkers())
    assert first == WorkerRecord(
        id=older.id,
        host=older.host,
        pid=older.pid,
        version=older.version,
        queues=("a", "b"),
        wire_names=frozenset({"x", "y"}),
        slots=3,
        started_at=started,
        lease_expires_at=started + LEASE,
        lapsed_at=None,
        live=True,
        running=0,
    )
    assert (second.id, second.running, second.started_at) == (newer, 1, clock())


def test_a_worker_whose_lease_ended_is_listed_as_not_live(
    store: Store, clock: VirtualClock
) -> None:
    """L2, C5: at its expiry instant, swept or not."""
    worker = register(store)
    clock.advance(LEASE)
    (row,) = store.perform_sync(ListWorkers())
    assert (row.id, row.live) == (worker, False)
