"""Programs on sqlite3: the clock, the locks, and what its errors mean."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.drivers import sqlite as driver
from tidemill.drivers.run import run
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.drivers.sqlite_blockage import Blockage
from tidemill.drivers.sqlite_errors import translated
from tidemill.errors import (
    AnswerLost,
    ConfigurationError,
    InvalidValue,
    SchemaError,
    StoreError,
    StoreUnavailable,
)
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrate, migrations
from tidemill.sql.program import Batch, Statement
from tidemill.values.ids import uuid7

CATALOGUE = Catalogue(SqliteDialect())
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def open_executor(tmp_path):
    opened = []

    def open_one(clock=lambda: NOON, blockage=None):
        path = tmp_path / "x.db"
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        opened.append(connection)
        return SqliteExecutor(connection, CATALOGUE, clock, blockage)

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture
def executor(open_executor):
    made = open_executor()
    run(migrate("sqlite"), made, write=True)
    return made


def test_the_clock_is_read_after_the_write_lock_is_granted(open_executor, executor):
    locked = []

    def clock():
        try:
            other.begin(write=True)
        except StoreUnavailable:
            locked.append(True)
        return NOON

    other = open_executor()
    mine = open_executor(clock)

    def program():
        rows = yield Statement("clock")
        return CATALOGUE.dialect.instant(rows[0]["now"])

    assert run(program(), mine, write=True) == NOON
    assert locked == [True]


def test_a_lock_that_another_holds_is_unavailable(open_executor, executor):
    executor.begin(write=True)
    with pytest.raises(StoreUnavailable, match="busy"):
        open_executor().begin(write=True)
    executor.rollback()


def test_a_batch_answers_how_many_rows_it_changed(executor):
    rows = [{"name": name, "value": 1} for name in ("version", "min_compatible", "new")]
    assert executor.step(Batch("set_meta", rows)) == ({"count": 3},)


def test_rows_are_read_by_name(executor):
    versions = {row["name"]: row["value"] for row in executor.step(Statement("versions"))}
    assert versions == {"version": migrations("sqlite")[-1].version, "min_compatible": 3}


def test_a_missing_schema_names_the_command(open_executor):
    with pytest.raises(SchemaError, match="tidemill migrate"):
        open_executor().step(Statement("count_jobs"))


@pytest.mark.parametrize("actor", ["\ud800", 1 << 70])
def test_a_value_that_sqlite_cannot_hold_is_a_refusal(executor, actor):
    with pytest.raises(InvalidValue, match="request_cancel"):
        executor.step(Statement("request_cancel", {"id": uuid7(1, 1), "actor": actor}))


def test_a_broken_constraint_is_a_refusal_and_not_worth_another_try(executor):
    row = {"action": uuid7(1, 1), "kind": "k", "actor": None, "at": NOON, "answer": "[]"}
    with pytest.raises(InvalidValue, match="NOT NULL"):
        executor.step(Statement("insert_action", row))


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (sqlite3.SQLITE_BUSY, StoreUnavailable, "write transactions short"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreUnavailable, "busy"),
        (sqlite3.SQLITE_LOCKED, StoreUnavailable, "busy"),
        (sqlite3.SQLITE_FULL, StoreUnavailable, "The disk is full"),
        (sqlite3.SQLITE_READONLY, StoreError, "read-only"),
        (sqlite3.SQLITE_CANTOPEN, StoreError, "folder must exist"),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnavailable, "system's log"),
        (sqlite3.SQLITE_CORRUPT, StoreError, "restore a copy"),
        (sqlite3.SQLITE_AUTH, StoreError, "own text"),
        (sqlite3.SQLITE_TOOBIG, InvalidValue, "refused a value"),
    ],
)
def test_each_error_says_what_to_do(code, kind, advice):
    error = sqlite3.OperationalError("something")
    error.sqlite_errorcode = code
    found = translated(error, "a_statement")
    assert type(found) is kind
    assert advice in str(found)
    assert "a_statement" in str(found)


def test_what_a_failing_disk_has_kept_of_a_commit_is_known_to_nobody():
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    assert type(translated(error, "commit")) is AnswerLost
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert type(translated(error, "commit")) is StoreUnavailable


def test_a_closed_connection_is_told_from_a_bad_value(executor):
    executor.close()
    with pytest.raises(StoreError, match="closed") as caught:
        executor.step(Statement("versions"))
    assert type(caught.value) is StoreError
    executor.close()


def test_an_old_library_is_refused_with_both_versions(monkeypatch):
    monkeypatch.setattr(driver, "OLDEST", (99, 0, 0))
    with pytest.raises(ConfigurationError, match=rf"{sqlite3.sqlite_version}.*99\.0\.0"):
        driver.require_version()


def seconds(monkeypatch, *readings):
    """Have the driver's own clock read these, one after the other."""
    left = iter(readings)
    monkeypatch.setattr(driver, "elapsed", lambda: next(left))


def test_the_end_of_a_long_wait_is_written_in_the_transaction_that_waited(
    open_executor, executor, monkeypatch
):
    seconds(monkeypatch, 0.0, 5.0, 5.0)
    waited = open_executor(blockage=Blockage())
    waited.begin(write=True)
    rows = waited.step(Statement("unwritable_until", {"lease": timedelta(0)}))
    assert CATALOGUE.dialect.instant(rows[0]["value"]) == NOON
    waited.rollback()
    assert list(executor.step(Statement("unwritable_until"))) == []


def test_a_long_wait_whose_note_was_rolled_back_is_noted_by_the_next_transaction(
    open_executor, executor, monkeypatch
):
    seconds(monkeypatch, 0.0, 5.0, 5.0, 5.0, 6.0, 6.0)
    waited = open_executor(blockage=Blockage())
    waited.begin(write=True)
    waited.rollback()
    waited.begin(write=True)
    waited.commit()
    assert len(executor.step(Statement("unwritable_until"))) == 1
    waited.begin(write=True)
    waited.step(Statement("set_meta", {"name": "unwritable_until", "value": 0}))
    waited.commit()
    (row,) = executor.step(Statement("unwritable_until"))
    assert row["value"] == 0


def test_what_a_process_knows_by_itself_counts_where_nobody_noted_anything(
    open_executor, executor, monkeypatch
):
    times = iter([NOON, NOON + timedelta(seconds=30), NOON + timedelta(seconds=90)])
    mine = open_executor(lambda: next(times), Blockage())
    seconds(monkeypatch, 0.0, 0.0, 10.0, 70.0)
    mine.begin(write=True)
    mine.commit()
    asked = Statement("unwritable_until", {"lease": timedelta(seconds=60)})
    assert CATALOGUE.dialect.instant(mine.step(asked)[0]["value"]) == NOON
    (row,) = mine.step(asked)
    assert CATALOGUE.dialect.instant(row["value"]) == NOON + timedelta(seconds=90)


def test_a_duration_and_an_instant_keep_their_microseconds():
    dialect = CATALOGUE.dialect
    instant = NOON + timedelta(microseconds=123457)
    assert dialect.instant(dialect.encode(instant)) == instant
    span = timedelta(days=3, microseconds=7)
    assert dialect.duration(dialect.encode(span)) == span
