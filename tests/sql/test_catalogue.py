"""Statements: loaded, overlaid, filled in, compiled and bound."""

import re
from importlib.resources import files

import pytest

from tidemill.sql.catalogue import Catalogue, compile_statement, fill, load, round_length
from tidemill.sql.codes import STATES
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrations
from tidemill.values.ids import uuid7

DIALECT = SqliteDialect()
CATALOGUE = Catalogue(DIALECT)
STATEMENTS = re.compile(r"(?:Statement|Batch|select_each)\(\s*\"(\w+)\"")


def sources():
    for folder in ("sql", "sql/programs", "sql/migrations", "drivers", "adapters"):
        for file in files("tidemill").joinpath(folder).iterdir():
            if file.name.endswith(".py"):
                yield file.read_text(encoding="utf-8")


def test_every_statement_that_a_program_names_is_there_and_every_one_there_is_named():
    text = "\n".join(sources())
    loops = {"lapsed_jobs", "lapsed_workers"}  # named in a list that a glance goes over
    counts = {"count_ready", "count_held", "count_scheduled", "count_running"}  # in a table
    constants = {"unwritable_until"}
    named = set(STATEMENTS.findall(text)) | loops | counts | constants
    steps = {name for step in migrations("sqlite") for name in step.statements}
    assert named == CATALOGUE.names - steps


def test_no_fragment_and_no_comment_is_left_in_any_statement():
    for name, text in load(DIALECT).items():
        assert "{{" not in text, name
        assert "--" not in text, name


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
