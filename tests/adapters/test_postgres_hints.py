"""Hints between processes: heard, seldom, and replaced when their connection dies (promise P7)."""

import select
from threading import Event

import psycopg
import pytest

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.postgres_notify import Notifier
from tidemill.errors import StoreUnavailable
from tidemill.store.enqueue import Enqueue


@pytest.fixture
def pair(postgres_url, clock):
    """A store that watches, and another one, as another process would have it."""
    opened = [PostgresStore(postgres_url, clock=clock) for _ in range(2)]
    yield opened
    for each in opened:
        each.close()


@pytest.fixture
def ear(postgres_url):
    """A plain connection that listens."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("LISTEN tidemill_wake")
        yield connection


def heard(connection):
    """Wait for a notification, and answer how many are there."""
    select.select([connection.fileno()], [], [], 10)
    return len(list(connection.notifies(timeout=0)))


def listening(watching):
    """A wake that is set with every hint, once the listener listens."""
    wake = Event()
    stop = watching.watch(wake.set)
    assert wake.wait(10)
    wake.clear()
    return wake, stop


def test_work_of_another_process_wakes_whoever_watches(mill, pair):
    watching, other = pair
    wake, stop = listening(watching)
    other.perform_sync(Enqueue((mill.job(),)))
    assert wake.wait(10)
    stop()


def test_work_of_this_process_wakes_at_once_without_the_database(mill, postgres):
    wake = Event()
    postgres.watch(wake.set)
    postgres.perform_sync(Enqueue((mill.job(),)))
    assert wake.is_set()


def test_a_listener_whose_connection_died_listens_again(mill, pair, postgres_url):
    watching, other = pair
    wake, _ = listening(watching)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
    assert wake.wait(10), "being back is a hint: what was said meanwhile was missed"
    wake.clear()
    other.perform_sync(Enqueue((mill.job(),)))
    assert wake.wait(10)


def test_the_first_of_a_window_notifies_in_its_own_transaction_and_the_rest_once(
    mill, ear, postgres_url, monkeypatch
):
    monkeypatch.setattr("tidemill.adapters.postgres_notify.WINDOW_SECONDS", 3600.0)
    store = PostgresStore(postgres_url, clock=mill.clock)
    store.perform_sync(Enqueue((mill.job(),)))
    assert heard(ear) == 1
    late = store._site.notifier
    monkeypatch.setattr("tidemill.adapters.postgres_notify.time.sleep", lambda _seconds: None)
    for _ in range(20):
        store.perform_sync(Enqueue((mill.job(),)))
    assert 1 <= heard(ear) <= 20
    store.close()
    assert late._promised is False


def test_nothing_is_notified_when_nothing_was_made(mill, ear, postgres_url):
    store = PostgresStore(postgres_url, clock=mill.clock)
    job = mill.job()
    store.perform_sync(Enqueue((job,)))
    assert heard(ear) == 1
    store._site.notifier._window_ends = 0.0
    store.perform_sync(Enqueue((job,)))
    store.close()
    assert list(ear.notifies(timeout=0)) == []


def test_with_hints_off_nobody_listens_and_nobody_notifies(mill, ear, postgres_url):
    store = PostgresStore(postgres_url, clock=mill.clock, hints=False)
    assert not store._listens
    store.watch(lambda: None)
    store.perform_sync(Enqueue((mill.job(),)))
    assert store._opened._listener is None
    store.close()
    assert list(ear.notifies(timeout=0)) == []


def test_behind_a_pooler_nobody_listens_but_at_an_address_of_its_own(
    mill, ear, postgres_url, clock
):
    behind = {"clock": clock, "prepared_statements": "off"}
    store = PostgresStore(postgres_url, **behind)
    assert not store._listens
    store.watch(lambda: None)
    store.perform_sync(Enqueue((mill.job(),)))
    assert heard(ear) == 1, "it notifies all the same"
    assert store._opened._listener is None
    direct = PostgresStore(postgres_url, listen_url=postgres_url, **behind)
    wake, stop = listening(direct)
    store._site.notifier._window_ends = 0.0
    store.perform_sync(Enqueue((mill.job(),)))
    assert wake.wait(10)
    stop()
    store.close()
    direct.close()


def test_a_window_has_one_first_and_one_late_notification():
    notifier = Notifier("c", lambda: pytest.fail("nobody connects yet"), enabled=True)
    assert notifier.due
    assert [notifier.first(), notifier.first()] == [True, False]
    assert not notifier.due


def test_a_notification_that_cannot_be_sent_is_lost_and_the_next_one_tries_again():
    tries = []

    def connect():
        tries.append(1)
        raise StoreUnavailable("no server")

    notifier = Notifier("c", connect, enabled=True)
    for _ in range(2):
        notifier.later()
        notifier.stop()
    assert len(tries) == 2
