"""A part of a transaction that fails by itself is undone, and the rest of it stands."""

import sqlite3

import pytest

from tidemill.drivers.run import run
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.errors import InvalidValue, StoreUnavailable
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrate
from tidemill.sql.parts import tentatively
from tidemill.sql.program import Statement
from tidemill.store.memory.clock import VirtualClock

CATALOGUE = Catalogue(SqliteDialect())


@pytest.fixture
def executor(tmp_path):
    connection = sqlite3.connect(tmp_path / "parts.db", isolation_level=None)
    executor = SqliteExecutor(connection, CATALOGUE, VirtualClock())
    run(migrate("sqlite"), executor, write=True)
    connection.execute("DELETE FROM tidemill_meta")
    yield executor
    connection.close()


def note(name, value):
    yield Statement("set_meta", {"name": name, "value": value})
    return name


def names(executor):
    rows = executor._connection.execute("SELECT name FROM tidemill_meta ORDER BY name").fetchall()
    return [row[0] for row in rows]


def failing(error):
    yield from note("part", 1)
    raise error


def around(part, otherwise=lambda _: "put off"):
    yield from note("before", 1)
    answer = yield from tentatively(part, otherwise)
    yield from note("later", 2)
    return answer


def test_a_part_that_succeeds_is_committed_with_the_rest(executor):
    assert run(around(lambda: note("part", 1)), executor, write=True) == "part"
    assert names(executor) == ["before", "later", "part"]


@pytest.mark.parametrize("error", [StoreUnavailable("busy"), InvalidValue("no")])
def test_a_part_that_fails_is_undone_and_the_rest_stands(executor, error):
    assert run(around(lambda: failing(error)), executor, write=True) == "put off"
    assert names(executor) == ["before", "later"]


def test_a_part_in_which_the_database_refuses_a_statement_is_undone(executor):
    assert run(around(lambda: note("part", None)), executor, write=True) == "put off"
    assert names(executor) == ["before", "later"]


def test_who_lets_the_failure_out_undoes_the_whole(executor):
    def let_out(failure):
        raise failure

    with pytest.raises(InvalidValue):
        run(around(lambda: note("part", None), let_out), executor, write=True)
    assert names(executor) == []


def test_parts_follow_each_other(executor):
    def several():
        first = yield from tentatively(lambda: note("one", None), lambda _: "failed")
        second = yield from tentatively(lambda: note("two", 2), lambda _: "failed")
        third = yield from tentatively(lambda: note("three", None), lambda _: "failed")
        return first, second, third

    assert run(several(), executor, write=True) == ("failed", "two", "failed")
    assert names(executor) == ["two"]
