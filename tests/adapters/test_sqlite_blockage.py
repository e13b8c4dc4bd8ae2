"""A time when nobody could write excuses hearts from beating (clause C10)."""

import sqlite3
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE

from tidemill.adapters.sqlite import SqliteStore
from tidemill.drivers import sqlite as driver
from tidemill.errors import JobIdConflict, StoreUnavailable
from tidemill.store.lease import Beat, Deregister, Maintain
from tidemill.values.ids import WorkerId, uuid7

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


class Elapsed:
    """The driver's own measure of a wait; each look at it takes `step` seconds."""

    def __init__(self):
        self.now, self.step = 0.0, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def elapsed(monkeypatch):
    found = Elapsed()
    monkeypatch.setattr(driver, "elapsed", found)
    return found


@pytest.fixture
def pass_time(clock, elapsed):
    """Let time pass, for the store and for the driver alike."""

    def move(by):
        clock.advance(by)
        elapsed.now += by.total_seconds()

    return move


@pytest.fixture
def user(path):
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def begin(path, clock):
    """Begin another process on the same file: it has waited for nothing."""
    begun = []

    def begin_one():
        begun.append(SqliteStore(path, clock=clock))
        return begun[-1]

    yield begin_one
    for store in begun:
        store.close()


@pytest.fixture
def other(begin):
    return begin()


def look(store):
    """Have a process write, as its heart does."""
    store.perform_sync(Deregister(WorkerId(uuid7(1, 1))))


def sweep(store):
    return store.perform_sync(Maintain(lease=LEASE)).lapsed


def run_one(bench):
    """A job that runs under a worker of the first process."""
    bench.enqueue(bench.job())
    worker = bench.register()
    bench.claim(worker)
    return worker


def test_an_open_transaction_blocks_beats_and_no_lapse_is_declared_within_a_lease_of_it(
    bench, clock, user, elapsed, other
):
    look(other)
    worker = run_one(bench)
    user.execute("BEGIN IMMEDIATE")
    elapsed.step = 40.0
    with pytest.raises(StoreUnavailable):
        bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
    clock.advance(LEASE)
    user.execute("ROLLBACK")
    assert bench.maintain().lapsed == ()

    elapsed.step = 0.0
    look(other)
    clock.advance(LEASE - MICROSECOND)
    assert sweep(other) == ()
    clock.advance(MICROSECOND)
    assert len(sweep(other)) == 1


def test_whoever_sweeps_first_after_a_block_declares_no_lapse_although_it_did_not_wait(
    bench, user, elapsed, pass_time, other
):
    """The other process ran all the time, and happened to write nothing during the block."""
    worker = run_one(bench)
    for _ in range(6):
        look(other)
        look(bench.store)
        bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
        pass_time(LEASE / 3)
    look(other)
    user.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
    pass_time(LEASE)
    user.execute("COMMIT")
    assert sweep(other) == ()
    for _ in range(2):
        pass_time(LEASE / 3)
        assert sweep(other) == ()
    pass_time(LEASE / 3)
    assert len(sweep(other)) == 1


def test_a_process_that_began_after_a_block_declares_no_lapse_before_a_lease_has_passed(
    bench, user, elapsed, pass_time, other
):
    worker = run_one(bench)
    user.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
    pass_time(LEASE)
    user.execute("COMMIT")
    assert sweep(other) == ()
    pass_time(LEASE / 2)
    assert sweep(other) == ()
    pass_time(LEASE / 2)
    assert len(sweep(other)) == 1


def test_a_process_that_ran_all_along_recovers_a_dead_one_when_its_lease_ends(
    bench, elapsed, pass_time, other
):
    look(other)
    pass_time(LEASE / 3)
    look(other)
    run_one(bench)
    for _ in range(2):
        pass_time(LEASE / 3)
        look(other)
        assert sweep(other) == ()
    pass_time(LEASE / 3)
    assert len(sweep(other)) == 1


def test_a_process_that_was_stopped_knows_nothing_of_the_time_it_slept(
    bench, elapsed, pass_time, other
):
    look(other)
    run_one(bench)
    pass_time(LEASE * 3)
    assert sweep(other) == ()
    for _ in range(3):
        pass_time(LEASE / 3)
        look(other)
    assert len(sweep(other)) == 1


def test_a_process_that_has_just_begun_trusts_what_others_saw_all_along(
    bench, pass_time, other, begin
):
    """Where somebody writes every second, a crash is recovered when the lease ends."""
    run_one(bench)
    for _ in range(60):
        pass_time(SECOND)
        look(other)
    assert len(sweep(begin())) == 1


def test_a_process_that_has_just_begun_trusts_nobody_who_did_not_see_all_of_it(
    bench, pass_time, other, begin
):
    run_one(bench)
    for seconds in (30, 2, *[1] * 28):
        pass_time(seconds * SECOND)
        look(other)
    assert sweep(begin()) == ()


def test_a_short_lease_is_waited_for_as_long_as_it_is_and_no_longer(
    bench, elapsed, pass_time, other
):
    worker = run_one(bench)
    bench.store.perform_sync(Beat(worker=worker, lease=SECOND))
    pass_time(LEASE)
    assert sweep(other) == ()
    pass_time(SECOND)
    assert len(sweep(other)) == 1


def test_a_lease_that_its_own_heart_found_dead_after_a_block_is_excused_as_well(
    bench, user, elapsed, pass_time, other
):
    worker = run_one(bench)
    pass_time(LEASE)
    assert not bench.store.perform_sync(Beat(worker=worker, lease=LEASE)).live
    assert sweep(other) == ()
    pass_time(LEASE / 2)
    look(other)
    pass_time(LEASE / 2)
    assert len(sweep(other)) == 1


def test_the_jobs_of_a_worker_that_is_not_there_wait_for_nobody(bench, path, elapsed, other):
    """No block makes a workers row vanish, or a worker deregister (clause C6)."""
    gone, ended = run_one(bench), run_one(bench)
    bench.store.perform_sync(Deregister(ended))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM tidemill_workers WHERE id = ?", (gone.bytes,))
    connection.close()
    assert {each.worker for each in sweep(other)} == {gone, ended}


def test_a_long_wait_is_noted_although_what_waited_was_refused(bench, clock, elapsed, other):
    look(other)
    run_one(bench)
    job = bench.job()
    bench.enqueue(job)
    elapsed.step = 40.0
    with pytest.raises(JobIdConflict):
        bench.enqueue(replace(job, priority=9))
    elapsed.step = 0.0
    clock.advance(LEASE)
    look(bench.store)
    assert sweep(other) == ()


def test_a_sweep_that_waited_long_itself_declares_no_lapse(bench, clock, elapsed):
    bench.enqueue(bench.job())
    bench.claim(bench.register())
    clock.advance(LEASE)
    elapsed.step = 40.0
    assert bench.maintain().lapsed == ()
    elapsed.step = 0.0
    clock.advance(LEASE)
    assert len(bench.maintain().lapsed) == 1


def test_short_waits_excuse_nobody(bench, clock, elapsed):
    bench.enqueue(bench.job())
    bench.claim(bench.register())
    clock.advance(LEASE)
    elapsed.step = 0.4
    assert len(bench.maintain().lapsed) == 1


def test_waits_that_no_heart_needs_to_fear_put_nothing_off(bench, clock, elapsed):
    """An application's ordinary transactions must not keep a dead worker's jobs for ever (C6)."""
    bench.enqueue(bench.job())
    bench.claim(bench.register())
    clock.advance(LEASE)
    elapsed.step = 2.0
    assert len(bench.maintain().lapsed) == 1
