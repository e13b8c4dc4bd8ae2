"""Migrations: numbered, complete, and refused when they are too new."""

import pytest

from tidemill.errors import SchemaError
from tidemill.sql.migrations import migrations, missing
from tidemill.sql.program import Statement


def answer(program, versions):
    """Drive a program over a database that says these versions."""
    rows = None
    try:
        while True:
            step = program.send(rows)
            assert isinstance(step, Statement)
            stored = {"find_meta": [{"found": 1}] if versions else [], "versions": versions}
            rows = stored[step.name]
    except StopIteration as stop:
        return stop.value


def versions(version, needs):
    return [{"name": "version", "value": version}, {"name": "min_compatible", "value": needs}]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_steps_are_numbered_from_one_without_a_gap(dialect):
    steps = migrations(dialect)
    assert [step.version for step in steps] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_step_needs_more_than_itself(dialect):
    for step in migrations(dialect):
        assert 1 <= step.min_compatible <= step.version, step.name


def test_a_new_database_lacks_every_step():
    assert answer(missing("sqlite"), []) == migrations("sqlite")


def test_a_database_of_our_version_lacks_none():
    ours = migrations("sqlite")[-1].version
    assert answer(missing("sqlite"), versions(ours, 1)) == ()


def test_a_newer_schema_that_still_works_with_us_is_used():
    assert answer(missing("sqlite"), versions(99, 1)) == ()


def test_a_newer_schema_that_does_not_is_refused():
    with pytest.raises(SchemaError, match="Upgrade Tidemill"):
        answer(missing("sqlite"), versions(99, 99))


def test_every_database_has_the_same_steps():
    names = [[step.name for step in migrations(dialect)] for dialect in ("sqlite", "postgres")]
    assert names[0] == names[1]
