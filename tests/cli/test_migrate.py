"""`tidemill migrate`: once, again, and only as a plan."""

import sqlite3
from contextlib import closing

import msgspec
import pytest


@pytest.fixture
def migrate(tidemill, tmp_path):
    return lambda *options: tidemill("migrate", "--store", f"sqlite:///{tmp_path}/new.db", *options)


def tables(path):
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


def test_the_first_time_makes_the_schema_and_the_second_changes_nothing(migrate, tmp_path):
    first, second = migrate(), migrate()
    assert first.stdout.startswith("Applied ")
    assert "tidemill_jobs" in tables(tmp_path / "new.db")
    assert second.stdout == "Nothing to apply: the schema is up to date.\n"
    assert (first.exit_code, second.exit_code) == (0, 0)


def test_a_plan_is_sql_that_makes_the_same_schema(migrate, tmp_path):
    plan = migrate("--plan")
    assert plan.exit_code == 0
    assert tables(tmp_path / "new.db") == set()
    with closing(sqlite3.connect(tmp_path / "by-hand.db")) as db:
        db.executescript(plan.stdout)
    migrate()
    assert tables(tmp_path / "by-hand.db") == tables(tmp_path / "new.db")
    assert migrate("--plan").stdout == "-- Nothing to apply: the schema is up to date.\n"


def test_both_answer_as_json(migrate):
    plan = msgspec.json.decode(migrate("--plan", "--json").stdout)["plan"]
    assert [set(step) for step in plan] == [{"name", "sql"}] * len(plan)
    applied = msgspec.json.decode(migrate("--json").stdout)
    assert applied == {"applied": [step["name"] for step in plan]}
    assert msgspec.json.decode(migrate("--json").stdout) == {"applied": []}
