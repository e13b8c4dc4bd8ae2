"""A time when nobody could write excuses hearts from beating (clause C10)."""

import sqlite3
from datetime import timedelta

import pytest

from tidemill.adapters.sqlite import SqliteStore
from tidemill.drivers import sqlite as driver
from tidemill.errors import StoreUnavailable
from tidemill.store.lease import Beat, Maintain

LEASE = timedelta(seconds=60)
SECOND = timedelta(seconds=1)


class Monotonic:
    """The driver's own measure of a wait; each look at it takes `step` seconds."""

    def __init__(self):
        self.now, self.step = 0.0, 0.0

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.fixture
def monotonic(monkeypatch):
    found = Monotonic()
    monkeypatch.setattr(driver, "time", found)
    return found


@pytest.fixture
def user(path):
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def other(path, clock):
    """Another process's store on the same file: it has waited for nothing."""
    store = SqliteStore(path, clock=clock)
    yield store
    store.close()


def test_an_open_transaction_blocks_beats_and_no_lapse_is_declared_within_a_lease_of_it(
    bench, clock, user, monotonic, other
):
    bench.enqueue(bench.job())
    worker = bench.register()
    bench.claim(worker)
    user.execute("BEGIN IMMEDIATE")
    monotonic.step = 2.0
    with pytest.raises(StoreUnavailable):
        bench.store.perform_sync(Beat(worker=worker, lease=LEASE))
    clock.advance(LEASE)
    user.execute("ROLLBACK")
    assert bench.maintain().lapsed == ()

    monotonic.step = 0.0
    clock.advance(LEASE - SECOND)
    assert other.perform_sync(Maintain(lease=LEASE)).lapsed == ()
    clock.advance(SECOND)
    assert len(other.perform_sync(Maintain(lease=LEASE)).lapsed) == 1


def test_a_sweep_that_waited_long_itself_declares_no_lapse(bench, clock, monotonic):
    bench.enqueue(bench.job())
    bench.claim(bench.register())
    clock.advance(LEASE)
    monotonic.step = 2.0
    assert bench.maintain().lapsed == ()
    monotonic.step = 0.0
    clock.advance(LEASE)
    assert len(bench.maintain().lapsed) == 1


def test_short_waits_excuse_nobody(bench, clock, monotonic):
    bench.enqueue(bench.job())
    bench.claim(bench.register())
    clock.advance(LEASE)
    monotonic.step = 0.4
    assert len(bench.maintain().lapsed) == 1
