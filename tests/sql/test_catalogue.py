"""Statements: loaded, overlaid, filled in, compiled and bound."""

import re
from importlib.resources import files

import pytest

from tidemill.errors import ConfigurationError
from tidemill.sql.catalogue import (
    Catalogue,
    compile_statement,
    fill,
    load,
    number_parameters,
    round_length,
)
from tidemill.sql.codes import STATES
from tidemill.sql.dialects.postgres import PostgresDialect
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrations
from tidemill.values.ids import uuid7

DIALECT = SqliteDialect()
CATALOGUE = Catalogue(DIALECT)
POSTGRES = PostgresDialect("mill")
DIALECTS = (DIALECT, POSTGRES)
OWN = {
    "sqlite": {
        "busy_timeout",
        "data_version",
        "joined_file",
        "take_write_lock",
        "noted_wait",
        "shared_looks",
    },
    "postgres": {"bound_lock_wait", "restore_lock_wait", "notify", "insert_one", "beat"},
}  # asked on this database alone
STATEMENTS = re.compile(r"(?:Statement|Batch|select_each)\(\s*\"(\w+)\"")


def sources():
    for folder in ("sql", "sql/programs", "sql/migrations", "drivers", "adapters", "bridges"):
        for file in files("tidemill").joinpath(folder).iterdir():
            if file.name.endswith(".py"):
                yield file.read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_statement_that_a_program_names_is_there_and_every_one_there_is_named(dialect):
    text = "\n".join(sources())
    constants = {"clock", "unwritable_until"}
    counts = {"count_ready", "count_held", "count_scheduled", "count_running"}  # in a table
    named = set(STATEMENTS.findall(text)) | constants | counts
    others = {name for each in DIALECTS if each is not dialect for name in OWN[each.name]}
    steps = {name for step in migrations(dialect.name) for name in step.statements}
    assert named - others == Catalogue(dialect).names - steps


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_fragment_and_no_comment_is_left_in_any_statement(dialect):
    for name, text in load(dialect).items():
        assert "{{" not in text, name
        assert "--" not in text, name


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_overlay_says_why_it_differs(dialect):
    for topic in files("tidemill.sql").joinpath("statements", dialect.name).iterdir():
        text = topic.read_text(encoding="utf-8")
        for statement in text.split("-- name: ")[1:]:
            name, second, *_ = statement.splitlines()
            if name not in OWN[dialect.name]:
                assert second.startswith("-- Differs because "), name


def test_a_dialect_overlays_what_is_common():
    assert load(DIALECT)["find_meta"].endswith("name = 'tidemill_meta'")


def test_parameters_become_placeholders_in_order():
    compiled = compile_statement("SELECT :b, a::int, :a FROM t WHERE x = :b", {})
    assert compiled.sql == "SELECT ?, a::int, ? FROM t WHERE x = ?"
    assert compiled.names == ("b", "a", "b")


def test_a_list_is_filled_up_to_a_round_length_with_its_last_value():
    ids = tuple(uuid7(n, n) for n in range(5))
    parameters = {"ids": ids, "held": 0}
    sql, values = CATALOGUE.bind("hold_jobs", parameters)
    assert sql.count("?") == 1 + 8
    assert values == (0, *(each.bytes for each in ids), *[ids[-1].bytes] * 3)


def test_lists_of_one_round_length_share_one_text():
    texts = {
        CATALOGUE.bind("stored_jobs", {"ids": tuple(uuid7(n, n) for n in range(count))})[0]
        for count in (5, 6, 7, 8)
    }
    assert len(texts) == 1


def test_a_short_list_after_a_long_one_keeps_its_own_values():
    long = tuple(uuid7(n, n) for n in range(8))
    CATALOGUE.bind("stored_jobs", {"ids": long})
    assert CATALOGUE.bind("stored_jobs", {"ids": long[:1]})[1] == (long[0].bytes,)


@pytest.mark.parametrize(("length", "filled"), [(0, 0), (1, 1), (2, 2), (3, 4), (1000, 1024)])
def test_round_lengths_are_powers_of_two(length, filled):
    assert round_length(length) == filled


def test_a_batch_is_bound_row_by_row():
    sql, rows = CATALOGUE.bind_each(
        "set_meta", [{"name": "a", "value": 1}, {"name": "b", "value": True}]
    )
    assert sql.startswith("INSERT INTO tidemill_meta")
    assert rows == [("a", 1), ("b", 1)]


def test_states_are_literals_so_that_partial_indexes_are_seen():
    text = fill("WHERE state = {{ready}} AND state IN ({{non_terminal}}) -- why", DIALECT.fragments)
    assert text == f"WHERE state = {STATES.index('ready')} AND state IN (0, 1, 2, 3)"


def test_where_there_are_arrays_a_parameter_has_one_number_and_a_list_is_one_array():
    compiled = number_parameters("SELECT :b::int, :a FROM t WHERE x IN (:ids*) AND y = :b")
    assert compiled.sql == "SELECT $1::int, $2 FROM t WHERE x = ANY($3) AND y = $1"
    assert compiled.names == ("b", "a", "ids")


def test_where_there_are_arrays_a_list_keeps_its_length_and_a_batch_is_columns():
    catalogue = Catalogue(POSTGRES)
    ids = tuple(uuid7(n, n) for n in range(5))
    sql, values = catalogue.bind("hold_jobs", {"ids": ids, "held": 0})
    assert sql == 'UPDATE "mill".jobs SET held = $1 WHERE id = ANY($2)'
    assert values == (0, list(ids))
    rows = [
        {"job_id": ids[0], "tag": "a", "value": ""},
        {"job_id": ids[1], "tag": "b", "value": ""},
    ]
    assert catalogue.bind_columns("insert_tag", rows)[1] == ([ids[0], ids[1]], ["a", "b"], ["", ""])


def test_the_time_is_told_by_the_driver_and_only_to_a_statement_that_asks():
    asked = []
    CATALOGUE.bind("stored_jobs", {"ids": ()}, lambda: asked.append(1))
    assert asked == []
    sql, values = CATALOGUE.bind("clock", {}, lambda: 7)
    assert (sql, values) == ("SELECT ? AS now", (7,))
    sql, values = Catalogue(POSTGRES).bind("clock", {})
    assert "clock_timestamp()" in sql
    assert values == (None,)


@pytest.mark.parametrize("schema", ["", "Mill", "1mill", 'a"b', "a" * 49, "a-b", "a.b"])
def test_a_schema_that_would_need_quoting_is_refused(schema):
    with pytest.raises(ConfigurationError, match="is no schema"):
        PostgresDialect(schema)
