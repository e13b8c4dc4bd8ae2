"""The memory store beyond the kit: no trace of a failed transaction, threads, and its guards."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Barrier

import pytest

from tidemill.conformance.endstates import dead_job
from tidemill.conformance.scenes import (
    AT_ONCE,
    MILLER,
    SECOND,
    claim,
    details,
    enqueue_one,
    exchange,
    fail,
    fresh_action,
    fresh_job_id,
    maintain,
    new_job,
    outcome,
    register,
    report,
    request,
    start,
    state_of,
)
from tidemill.errors import IllegalTransition, JobIdConflict
from tidemill.store.contract import Operation
from tidemill.store.enqueue import Enqueue
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.store.memory import claim as claims
from tidemill.store.memory import exchange as exchanges
from tidemill.store.memory.tables import Tables
from tidemill.store.monitor import CountJobs
from tidemill.store.operators import PauseQueue, Requeue
from tidemill.values import causes
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(clock: VirtualClock) -> MemoryStore:
    return MemoryStore(clock)


def picture(tables: Tables) -> object:
    """Everything that the tables hold, indexes included, to be compared."""
    indexes = [
        tables.every,
        tables.ready,
        tables.held,
        tables.scheduled,
        tables.running,
        tables.expiring,
        tables.keyed,
    ]
    places = [{group: index.ids(group) for group in index.groups()} for index in indexes]
    attempts = {job_id: tables.attempts(job_id) for job_id in tables.jobs}
    rows = dict(tables.jobs), dict(tables.workers), dict(tables.audit), dict(tables.paused)
    return rows, attempts, places


def rebuilt(tables: Tables) -> Tables:
    """The same rows in fresh indexes."""
    fresh = Tables()
    with fresh.transaction():
        for row in tables.jobs.values():
            fresh._swap(None, row)
            fresh.save_attempts(row.record.id, tables.attempts(row.record.id))
        for worker in tables.workers.values():
            fresh.save_worker(worker)
        for action, answered in tables.audit.items():
            fresh.save_action(action, answered)
        for queue, paused in tables.paused.items():
            fresh.save_paused(queue, paused=paused)
    return fresh


def busy(store: MemoryStore, clock: VirtualClock) -> None:
    """Leave jobs in every state, so that every index holds something."""
    worker = register(store)
    dead_job(store, idempotency_key="dead")
    fail(store, start(store, worker, idempotency_key="waiting"))
    start(store, worker)
    enqueue_one(store, wire_name="mill.sift")
    claim(store, worker, wire_names=frozenset())
    enqueue_one(store, delay=SECOND, not_after=clock() + 9 * SECOND, tenant="acme")
    enqueue_one(store, idempotency_key="ready", priority=3)


def test_indexes_say_what_the_rows_say(store: MemoryStore, clock: VirtualClock) -> None:
    busy(store, clock)
    assert picture(store._tables) == picture(rebuilt(store._tables))


def test_a_batch_that_is_refused_in_its_middle_leaves_no_trace(
    store: MemoryStore, clock: VirtualClock
) -> None:
    busy(store, clock)
    before = picture(store._tables)
    twice = new_job()
    batch = (new_job(), new_job(delay=SECOND, idempotency_key="x"), twice)
    with pytest.raises(JobIdConflict):
        store.perform_sync(Enqueue((*batch, replace(twice, priority=1))))
    assert picture(store._tables) == before


def test_an_exchange_that_breaks_in_its_claim_leaves_no_trace_of_its_outcomes(
    store: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(store, clock)
    worker = register(store)
    jobs = claim(store, worker, 1)
    before = picture(store._tables)

    def broken(*_: object) -> None:
        message = "the roof fell in"
        raise RuntimeError(message)

    monkeypatch.setattr(claims, "next_due", broken)
    for verdict in (Verdict.SUCCEEDED, Verdict.FAILED, Verdict.RELEASED):
        with pytest.raises(RuntimeError, match="roof"):
            exchange(store, worker, outcome(jobs[0], verdict), claim=request(5))
        assert picture(store._tables) == before


def test_a_stale_record_is_written_after_the_transaction_and_lost_alone(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = register(store)
    job = start(store, worker)
    stale = outcome(replace(job, attempt=7), Verdict.SUCCEEDED)

    def broken(*_: object) -> None:
        message = "the roof fell in"
        raise RuntimeError(message)

    monkeypatch.setattr(exchanges, "record_stale", broken)
    with pytest.raises(RuntimeError, match="roof"):
        exchange(store, worker, stale, outcome(job, Verdict.SUCCEEDED))
    assert state_of(store, job.id) is JobState.SUCCEEDED


def test_a_bulk_action_that_breaks_leaves_neither_changes_nor_audit(
    store: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = dead_job(store), dead_job(store)
    before = picture(store._tables)
    operation = Requeue(job_ids=(first, second), actor=MILLER, action=fresh_action())

    def broken(*_: object) -> None:
        message = "the roof fell in"
        raise RuntimeError(message)

    with monkeypatch.context() as patched:
        patched.setattr(Tables, "save_action", broken)
        with pytest.raises(RuntimeError, match="roof"):
            store.perform_sync(operation)
    assert picture(store._tables) == before
    assert {result.state for result in store.perform_sync(operation)} == {JobState.READY}


def test_every_action_is_audited_once_with_its_actor_its_kind_and_its_answer(
    store: MemoryStore, clock: VirtualClock
) -> None:
    job_id, unknown = dead_job(store), fresh_job_id()
    action = fresh_action()
    operation = Requeue(job_ids=(job_id, unknown), actor="ada", action=action)
    first = store.perform_sync(operation)
    clock.advance(SECOND)
    store.perform_sync(operation)
    (row,) = store._tables.audit.values()
    assert (row.kind, row.actor, row.at) == ("requeue", "ada", clock() - SECOND)
    assert row.results == first


def test_a_pause_that_breaks_leaves_neither_the_pause_nor_its_audit(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = picture(store._tables)
    pause = PauseQueue(queue="mail", paused=True, actor=MILLER, action=fresh_action())

    def broken(*_: object) -> None:
        message = "the roof fell in"
        raise RuntimeError(message)

    with monkeypatch.context() as patched:
        patched.setattr(Tables, "save_action", broken)
        with pytest.raises(RuntimeError, match="roof"):
            store.perform_sync(pause)
    assert picture(store._tables) == before
    assert store.perform_sync(pause).paused


def test_a_poisonous_row_found_at_a_claim_is_buried_and_never_run(
    store: MemoryStore, clock: VirtualClock
) -> None:
    """No operation leads there: the row is changed from outside (clause E4)."""
    job_id = enqueue_one(store, retry=Retry(interruption_limit=2))
    other = enqueue_one(store)
    row = store._tables.jobs[job_id]
    with store._tables.transaction():
        store._tables.save_job(row.now_says(replace(row.record, lapses=7, lapses_base=4)))
    assert [job.id for job in claim(store, register(store), 1)] == [other]
    record = details(store, job_id).record
    assert (record.state, record.cause) == (JobState.DEAD, causes.POISON)
    assert (record.finished_at, record.attempt) == (clock(), 0)


def test_a_write_along_an_edge_that_does_not_exist_raises_and_changes_nothing(
    store: MemoryStore,
) -> None:
    job_id = enqueue_one(store)
    row = store._tables.jobs[job_id]
    before = picture(store._tables)
    leap = replace(row.record, state=JobState.SUCCEEDED)

    def leaping() -> None:
        with store._tables.transaction():
            store._tables.save_job(row.now_says(replace(row.record, priority=1)))
            store._tables.save_job(row.now_says(leap))

    with pytest.raises(IllegalTransition, match="from ready to succeeded"):
        leaping()
    assert picture(store._tables) == before


def test_a_claim_sets_a_bounded_number_of_jobs_aside(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MOST_SET_ASIDE", 4)
    for _ in range(6):
        enqueue_one(store, wire_name="mill.sift")
    known = enqueue_one(store)
    worker = register(store)
    names = frozenset({"mill.grind"})
    assert claim(store, worker, 1, wire_names=names) == ()
    assert [job.id for job in claim(store, worker, 1, wire_names=names)] == [known]


def test_threads_may_share_it_and_two_claims_never_share_a_job(store: MemoryStore) -> None:
    jobs = [enqueue_one(store, retry=AT_ONCE) for _ in range(200)]
    together = Barrier(4)

    def work() -> list[object]:
        worker = register(store)
        together.wait()
        done = []
        while claimed := claim(store, worker, 3):
            done += [job.id for job in claimed]
            for job in claimed:
                report(store, job, Verdict.SUCCEEDED)
        return done

    with ThreadPoolExecutor(4) as pool:
        parts = [part.result() for part in [pool.submit(work) for _ in range(4)]]
    assert Counter(job_id for part in parts for job_id in part) == Counter(jobs)
    (count,) = store.perform_sync(CountJobs())
    assert (count.state, count.count) == (JobState.SUCCEEDED, 200)


def test_a_wake_may_use_the_store(store: MemoryStore) -> None:
    seen = []
    store.watch(lambda: seen.append(store.perform_sync(CountJobs())))
    enqueue_one(store)
    assert len(seen) == 1
    assert seen[0][0].count == 1


def test_a_release_of_held_jobs_gives_a_hint_and_a_hold_gives_none(store: MemoryStore) -> None:
    enqueue_one(store, wire_name="mill.sift")
    worker = register(store)
    woken = []
    store.watch(lambda: woken.append(1))
    claim(store, worker, wire_names=frozenset())
    maintain(store)
    assert woken == []
    register(store, wire_names=frozenset({"mill.sift"}))
    assert woken == [1]


def test_the_same_story_on_the_same_clock_is_answered_the_same(clock: VirtualClock) -> None:
    job = new_job(retry=Retry(jitter=1))
    answers = []
    for _ in range(2):
        store = MemoryStore(clock)
        store.perform_sync(Enqueue((job,)))
        worker = register(store)
        fail(store, claim(store, worker)[0])
        answers.append(replace(details(store, job.id), attempts=()))
    assert answers[0] == answers[1]


def test_an_operation_that_nobody_performs_is_an_error(store: MemoryStore) -> None:
    @dataclass(frozen=True)
    class Unheard(Operation[None]):
        """An operation that the contract does not have."""

    with pytest.raises(TypeError, match="Unheard"):
        store.perform_sync(Unheard())


def test_it_is_for_this_process_alone(store: MemoryStore) -> None:
    capabilities = store.capabilities
    assert (capabilities.name, capabilities.hints) == ("memory", True)
    assert not capabilities.persistent


def test_an_operation_has_one_instant_however_the_clock_runs() -> None:
    ticking = VirtualClock()

    def tick() -> object:
        return ticking.advance(timedelta(seconds=1))

    store = MemoryStore(tick)
    worker = register(store)
    for _ in range(3):
        enqueue_one(store)
    jobs = claim(store, worker, 3)
    assert len({job.started_at for job in jobs}) == 1
