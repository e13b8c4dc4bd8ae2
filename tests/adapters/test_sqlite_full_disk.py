"""A disk that takes no writes: everybody may begin, and nobody can commit (C10, M3)."""

import asyncio
import logging
import resource
from contextlib import contextmanager
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE
from tests.waiting import until

from tidemill import Tidemill
from tidemill.adapters.sqlite import SqliteStore
from tidemill.drivers import sqlite as driver
from tidemill.errors import StoreError, StoreUnavailable
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat, Deregister, Maintain
from tidemill.values.ids import WorkerId, uuid7
from tidemill.values.states import JobState

SOON = timedelta(seconds=0.1)
"""Too soon for a process to leave another look in the database."""


@contextmanager
def no_room():
    """No file of this process may be written to: what a full disk does, at every commit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def pass_time(clock, monkeypatch):
    """Let time pass, for the store and for the driver alike."""
    now = 0.0
    monkeypatch.setattr(driver, "elapsed", lambda: now)

    def move(by):
        nonlocal now
        clock.advance(by)
        now += by.total_seconds()

    return move


@pytest.fixture
def other(path, clock):
    """Another process's store on the same file."""
    store = SqliteStore(path, clock=clock)
    yield store
    store.close()


def look(store):
    """Have a process write, as its heart does."""
    store.perform_sync(Deregister(WorkerId(uuid7(1, 1))))


def beat(worker):
    return Beat(worker=worker, lease=LEASE)


def sweep(store):
    return store.perform_sync(Maintain(lease=LEASE)).lapsed


def test_no_lapse_is_declared_within_a_lease_of_a_time_when_the_disk_was_full(
    bench, other, pass_time
):
    look(other)
    bench.enqueue(bench.job())
    worker = bench.register()
    bench.claim(worker)
    with no_room():
        for _ in range(3):
            pass_time(LEASE / 3)
            for write in (lambda: look(other), lambda: bench.store.perform_sync(beat(worker))):
                with pytest.raises(StoreError):
                    write()
    assert sweep(other) == ()
    assert sweep(bench.store) == ()
    for _ in range(2):
        pass_time(LEASE / 3)
        look(other)
        assert sweep(other) == ()
    pass_time(LEASE / 3)
    look(other)
    assert len(sweep(other)) == 1


def test_a_process_that_began_after_the_disk_was_full_heeds_it_too(bench, path, clock, pass_time):
    bench.enqueue(bench.job())
    worker = bench.register()
    bench.claim(worker)
    with no_room():
        for _ in range(3):
            pass_time(LEASE / 3)
            with pytest.raises(StoreError):
                bench.store.perform_sync(beat(worker))
    look(bench.store)
    late = SqliteStore(path, clock=clock)
    assert sweep(late) == ()
    late.close()


def test_a_transaction_that_wrote_nothing_does_not_show_that_the_disk_takes_anything(
    store, clock, pass_time
):
    """SQLite commits a transaction without changes on any disk."""
    look(store)
    pass_time(SOON)
    with no_room(), store.dedicated() as channel:
        channel._executor.begin(write=True)
        channel._executor.commit()
    half = (LEASE / 2).total_seconds()
    known = store._site.blockage.writable_since
    assert known(half, clock(), LEASE) < clock()
    assert known(half + SOON.total_seconds(), clock(), LEASE) == clock()


def test_a_file_at_its_bound_says_that_the_disk_is_full_and_leaves_no_trace(bench, store):
    bench.enqueue(bench.job())
    with store.dedicated() as channel:
        pages = channel._connection.execute("PRAGMA page_count").fetchone()[0]
        channel._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = bench.job(payload=b'"' + b"x" * 60_000 + b'"')
        with pytest.raises(StoreUnavailable, match=r"The disk is full.*make room"):
            channel.perform(Enqueue((large,)))
        assert not channel._executor.in_transaction
        channel._connection.execute("PRAGMA max_page_count = 1000000")
        channel.perform(Enqueue((large,)))
    assert bench.get(large.id).state is JobState.READY


@pytest.mark.anyio
async def test_a_worker_outlives_a_full_disk_and_goes_on_when_there_is_room(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="tidemill")
    mill = Tidemill(f"sqlite:///{tmp_path / 'full.db'}")
    done = asyncio.Event()

    @mill.job("t.write")
    async def write() -> None:
        done.set()

    async with mill.worker(lease="3s", poll_interval="50ms"):
        with no_room():
            with pytest.raises(StoreError):
                await write.enqueue()
            await until(lambda: "had no answer" in caplog.text)
        ref = await write.enqueue()
        await ref.result(timeout=60)
    assert done.is_set()
