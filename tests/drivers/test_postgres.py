"""Programs on connections of asyncpg and psycopg: the same rows, the same errors, the same ends."""

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import psycopg
import pytest

from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.postgres_errors import translated
from tidemill.drivers.postgres_session import UNHURRIED, Limits, beginnings
from tidemill.drivers.psycopg import PsycopgExecutor, refused_at_the_door
from tidemill.drivers.run import look, look_async, run, run_async
from tidemill.errors import (
    AnswerLost,
    InvalidValue,
    SchemaError,
    StoreError,
    StoreUnavailable,
)
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.postgres import PostgresDialect
from tidemill.sql.program import COMMIT, Batch, Statement
from tidemill.values.ids import uuid7

CATALOGUE = Catalogue(PostgresDialect())
BEGINNINGS = beginnings(Limits(lock=timedelta(milliseconds=50)))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IDS = tuple(uuid7(n, n) for n in range(3))


class Sync:
    """A connection of psycopg, driven as a test wishes."""

    def __init__(self, url, clock=None):
        self.connection = psycopg.connect(url, autocommit=True)
        self.executor = PsycopgExecutor(self.connection, CATALOGUE, BEGINNINGS, clock)

    def run(self, program, *, write=True, **more):
        return run(program, self.executor, write=write, **more)

    def look(self, program):
        return look(program, self.executor)

    def close(self):
        self.connection.close()


class Async:
    """A connection of asyncpg on a loop of its own."""

    def __init__(self, url, clock=None):
        self.loop = asyncio.Runner()
        self.connection = self.loop.run(asyncpg.connect(url))
        self.executor = AsyncpgExecutor(self.connection, CATALOGUE, BEGINNINGS, clock)

    def run(self, program, *, write=True, **more):
        return self.loop.run(run_async(program, self.executor, write=write, **more))

    def look(self, program):
        return self.loop.run(look_async(program, self.executor))

    def close(self):
        self.loop.run(self.connection.close())
        self.loop.close()


@pytest.fixture(params=[Sync, Async], ids=["psycopg", "asyncpg"])
def opened(request, postgres_url):
    """Makes drivers on an empty database."""
    drivers = []

    def open_one(clock=None):
        drivers.append(request.param(postgres_url, clock))
        return drivers[-1]

    yield open_one
    for each in drivers:
        each.close()


@pytest.fixture
def driver(opened):
    return opened()


def one(name, **params):
    """A program of one statement: its rows."""
    return (yield Statement(name, params))


def tags(*rows):
    """A program that inserts tags."""
    yield Batch("insert_tag", [{"job_id": id_, "tag": tag, "value": ""} for id_, tag in rows])


def found(driver, job):
    return [row["tag"] for row in driver.look(one("job_tags", id=job))]


def test_the_clock_is_the_servers_unless_a_test_gives_one(opened):
    (row,) = opened().look(one("clock"))
    assert abs(row["now"] - datetime.now(UTC)) < timedelta(minutes=5)
    (row,) = opened(lambda: NOON).look(one("clock"))
    assert row["now"] == NOON


def test_a_batch_is_one_statement_and_an_array_one_parameter(driver):
    driver.run(tags((IDS[0], "a"), (IDS[1], "b"), (IDS[1], "c")))
    assert [found(driver, each) for each in IDS] == [["a"], ["b", "c"], []]
    assert driver.look(one("stored_jobs", ids=IDS)) in ([], ())


def test_what_fails_is_undone_and_the_connection_is_good_again(driver):
    def failing():
        yield from tags((IDS[0], "a"))
        raise KeyError

    with pytest.raises(KeyError):
        driver.run(failing())
    assert driver.executor.usable
    assert found(driver, IDS[0]) == []


def test_a_statement_that_fails_is_undone_with_all_before_it(driver):
    def failing():
        yield from tags((IDS[0], "a"))
        yield Batch("insert_tag", [{"job_id": IDS[0], "tag": "nul\0", "value": ""}])

    with pytest.raises(InvalidValue, match="insert_tag"):
        driver.run(failing())
    assert driver.executor.usable
    assert found(driver, IDS[0]) == []


def test_what_was_committed_before_a_failure_stays_and_the_answer_is_lost(driver, postgres_url):
    with psycopg.connect(postgres_url) as other:

        def failing():
            yield from tags((IDS[0], "a"))
            yield COMMIT
            other.execute("LOCK TABLE tidemill.tags")
            yield from tags((IDS[0], "b"))

        with pytest.raises(AnswerLost, match="part of this was committed"):
            driver.run(failing())
    assert found(driver, IDS[0]) == ["a"]


def test_a_reading_transaction_cannot_write(driver):
    with pytest.raises(StoreError, match="25006"):
        driver.run(tags((IDS[0], "a")), write=False)
    assert driver.executor.usable


def test_the_closing_words_are_said_in_the_same_transaction(driver, postgres_url):
    said = Statement("notify", {"channel": "tidemill_wake"})
    with psycopg.connect(postgres_url, autocommit=True) as ear:
        ear.execute("LISTEN tidemill_wake")
        driver.run(tags((IDS[0], "a")), closing=lambda _answer: (said,))
        assert len(list(ear.notifies(timeout=5, stop_after=1))) == 1


def test_a_lock_that_is_held_for_too_long_is_unavailable(driver, postgres_url):
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE tidemill.tags")
        with pytest.raises(StoreUnavailable, match="55P03"):
            driver.run(tags((IDS[0], "a")))
    assert driver.executor.usable


def test_transactions_that_wait_for_each_other_are_unavailable_to_one(postgres_url):
    """The detector looks after a second; the waits here are bounded by it alone."""
    connect = partial(psycopg.connect, postgres_url, autocommit=True)
    unhurried = beginnings(UNHURRIED)
    with connect() as one_end, connect() as other_end:
        first, second = (
            PsycopgExecutor(each, CATALOGUE, unhurried) for each in (one_end, other_end)
        )
        for executor, key in ((first, 1), (second, 2)):
            executor.begin(write=True)
            executor._connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        with waiting_for_lock(other_end, 1), pytest.raises(psycopg.errors.DeadlockDetected) as one:
            one_end.execute("SELECT pg_advisory_xact_lock(2)")
        assert isinstance(translated(one.value.sqlstate, "", "x"), StoreUnavailable)


@contextmanager
def waiting_for_lock(connection, key):
    """Have a connection wait for a lock; the deadlock is the other one's to meet."""
    connection.execute("SET deadlock_timeout = '1min'")
    connection.pgconn.send_query(f"SELECT pg_advisory_xact_lock({key})".encode())
    yield
    connection.close()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (None, StoreUnavailable),
        ("08006", StoreUnavailable),
        ("40P01", StoreUnavailable),
        ("40001", StoreUnavailable),
        ("55P03", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("57P01", StoreUnavailable),
        ("57P03", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("23505", StoreUnavailable),
        ("25P03", StoreUnavailable),
        ("0A000", StoreUnavailable),
        ("42P01", SchemaError),
        ("3F000", SchemaError),
        ("42703", SchemaError),
        ("22021", InvalidValue),
        ("22P02", InvalidValue),
        ("23514", InvalidValue),
        ("54000", InvalidValue),
        ("28P01", StoreError),
        ("3D000", StoreError),
        ("42501", StoreError),
        ("53100", StoreError),
        ("25006", StoreError),
        ("26000", StoreError),
        ("XX000", StoreError),
    ],
)
def test_every_error_of_the_database_is_an_error_of_ours(state, kind):
    error = translated(state, "the text", "claim")
    assert type(error) is kind
    assert "the text" in str(error)


def test_a_pooler_that_mixes_up_statements_is_told_how_to_be_used():
    assert "prepared_statements='off'" in str(translated("26000", "it does not exist", "x"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('FATAL:  password authentication failed for user "m"', "28P01"),
        ('FATAL:  database "d" does not exist', "3D000"),
        ('FATAL:  role "m" does not exist', "28000"),
        ('FATAL:  no pg_hba.conf entry for host "h"', "28000"),
    ],
)
def test_a_refusal_at_the_door_is_not_mistaken_for_a_fault_that_passes(text, said):
    error = refused_at_the_door(psycopg.OperationalError(text), "connect")
    assert type(error) is StoreError
    assert said in str(error)
    crowd = psycopg.OperationalError("FATAL:  sorry, too many clients already")
    assert isinstance(refused_at_the_door(crowd, "connect"), StoreUnavailable)


@pytest.mark.parametrize("value", ["nul\0", "lone \ud800"])
def test_text_that_no_database_can_hold_is_refused(driver, value):
    with pytest.raises(InvalidValue, match="key_holders"):
        driver.look(one("key_holders", tenant=value, keys=("k",)))
    with pytest.raises(InvalidValue, match="key_holders"):
        driver.look(one("key_holders", tenant="", keys=("k", value)))


def test_a_value_of_a_type_that_nobody_knows_is_a_fault_of_ours(driver):
    with pytest.raises(TypeError, match="No encoding for object"):
        driver.look(one("job_tags", id=object()))
