"""`tidemill doctor`: what it prints, that it changes no row, and what it exits with."""

import sqlite3
import sys
import time
from contextlib import closing
from datetime import timedelta

import msgspec
import psycopg
import pytest
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers

from tidemill.cli import output


def by_check(result):
    """The findings that JSON shows, as results by check."""
    found = {}
    for each in msgspec.json.decode(result.stdout)["findings"]:
        found.setdefault(each["check"], []).append(each["result"])
    return found


@pytest.fixture
def live(shop):
    """The shop with a live worker; the store it is asked through reads the host's clock."""
    shop.worker()
    hour = 3_600_000_000
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as db:
        db.execute(
            "UPDATE tidemill_workers SET lease = ?, lease_expires_at = ?",
            (hour, time.time_ns() // 1_000 + hour),
        )
    return shop


def test_a_store_that_is_well_exits_with_0_and_says_so_in_every_line(live):
    result = live.run("doctor")
    assert (result.exit_code, result.stderr) == (0, ""), result.stdout
    *lines, empty, total = result.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines), result.stdout
    assert (empty, total) == ("", f"0 problems, 0 warnings, {len(lines)} ok")


def test_each_thing_that_is_looked_at_has_a_finding(live):
    result = live.run("doctor", "--json")
    assert set(by_check(result)) == {
        "store", "clock", "schema", "durability", "file", "write lock", "workers", "queues",
        "wire names", "running", "dead letters", "environment",
    }  # fmt: skip
    assert msgspec.json.decode(result.stdout)["result"] == "ok"


def test_what_is_wrong_stands_first_with_what_to_do_and_exits_with_1(live):
    live.enqueue(queue="mail")
    live.run("queues", "pause", "payments")
    live.enqueue()
    result = live.run("doctor")
    assert result.exit_code == 1
    first, advice, second, *_ = result.stdout.splitlines()
    assert first.startswith('problem  queues        No live worker serves "mail" (1 job')
    assert "→ Start a worker with --queues mail" in advice
    assert second.startswith('warning  queues        Paused, with work to do: "payments"')
    assert "1 problem, 1 warning, " in result.stdout


def test_warnings_alone_exit_with_0(shop):
    result = shop.run("doctor")
    assert result.exit_code == 0
    assert "No worker is live" in result.stdout
    assert "0 problems, 1 warning, " in result.stdout


def test_it_changes_no_row(live):
    live.enqueue()
    with closing(sqlite3.connect(live.path)) as db:
        before = list(db.iterdump())
        live.run("doctor")
        assert list(db.iterdump()) == before


@pytest.mark.parametrize(("mode", "exit_code"), [("wal", 0), ("delete", 1)])
def test_it_changes_no_file_and_no_setting_however_often_it_is_asked(live, mode, exit_code):
    live.store.close()
    with closing(sqlite3.connect(live.path)) as db:
        assert db.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
    for _ in range(2):
        before = {file.name: file.read_bytes() for file in live.path.parent.iterdir()}
        result = live.run("doctor", "--json")
        assert result.exit_code == exit_code
        assert by_check(result)["durability"] == ["ok" if mode == "wal" else "problem"]
        assert {file.name: file.read_bytes() for file in live.path.parent.iterdir()} == before


def test_names_from_the_store_cannot_steer_a_terminal(live):
    live.enqueue(queue="\x1b[2Jmail")
    assert "\x1b" not in live.run("doctor").stdout


def test_at_80_columns_no_line_is_longer(live, monkeypatch):
    live.enqueue(queue="a-queue-with-a-rather-long-name-that-somebody-thought-of", delay=None)
    console = output.console
    monkeypatch.setattr("tidemill.cli.doctor.console", lambda: console(width=80))
    lines = live.run("doctor").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 20


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_missing_database_exits_with_3_and_is_not_made(tidemill, tmp_path, options):
    missing = tmp_path / "typo.db"
    result = tidemill("doctor", "--store", f"sqlite:///{missing}", *options)
    assert result.exit_code == 3
    assert f"There is no database {missing}." in result.stdout
    assert not missing.exists()


def test_a_database_of_somebody_else_exits_with_3(tidemill, tmp_path):
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as db:
        db.execute("CREATE TABLE letters (text)")
    result = tidemill("doctor", "--store", f"sqlite:///{tmp_path}/theirs.db")
    assert result.exit_code == 3
    assert "has no Tidemill tables" in result.stdout


@pytest.mark.parametrize(
    ("version", "needs", "says"),
    [
        (0, 0, "no Tidemill tables"),
        (1, 1, "Run `tidemill migrate --store sqlite:///"),
        (99, 98, "Upgrade Tidemill"),
    ],
)
def test_a_schema_that_does_not_fit_exits_with_3_and_the_rest_is_told(shop, version, needs, says):
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as db:
        for name, value in (("version", version), ("min_compatible", needs)):
            db.execute("UPDATE tidemill_meta SET value = ? WHERE name = ?", (value, name))
    result = shop.run("doctor")
    assert result.exit_code == 3
    assert says in result.stdout
    assert "durability" in result.stdout
    with closing(sqlite3.connect(shop.path)) as db:
        assert db.execute("SELECT value FROM tidemill_meta WHERE name = 'version'").fetchone() == (
            version,
        )


APP = """
from tidemill import Tidemill

mill = Tidemill("sqlite:///{path}")

@mill.job("orders.refund", queue="payments")
def refund(payment: str) -> None: ...
"""


def test_an_applications_names_are_held_against_jobs_and_workers(
    live, tidemill, tmp_path, monkeypatch
):
    live.enqueue()
    (tmp_path / "doctors_shop.py").write_text(APP.format(path=live.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = tidemill("doctor", "doctors_shop:mill")
    sys.modules.pop("doctors_shop", None)
    assert 'The application does not declare "orders.capture" (1 job).' in result.stdout
    assert 'declares "orders.refund", which no live worker knows.' in result.stdout


def test_no_store_and_a_wrong_application_exit_with_2(tidemill):
    assert tidemill("doctor").exit_code == 2
    assert tidemill("doctor", "no_such_module:mill").exit_code == 2
    assert tidemill("doctor", "--store", "memory://").exit_code == 2


def test_postgresql_is_examined_too(tidemill, postgres_url):
    result = tidemill("doctor", "--store", postgres_url, "--json")
    assert result.exit_code == 1
    found = by_check(result)
    assert found["durability"] == ["problem"]  # the server of the tests runs without fsync
    assert (found["pooler"], found["workers"]) == (["ok"], ["warning"])
    assert {"transactions", "connections", "bloat", "clock"} <= found.keys()


def test_a_server_that_does_not_answer_exits_with_3_and_shows_no_password(tidemill):
    url = "postgresql://app:s3cret@127.0.0.1:1/orders"
    result = tidemill("doctor", "--store", url, env={"TIDEMILL_STORE": url})
    assert result.exit_code == 3
    assert "Connection refused" in result.stdout
    assert "s3cret" not in result.stdout + result.stderr


def test_a_question_that_cannot_be_answered_leaves_the_others(tidemill, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE tidemill.jobs RENAME COLUMN cause TO because")
        try:
            result = tidemill("doctor", "--store", postgres_url, "--json")
        finally:
            connection.execute("ALTER TABLE tidemill.jobs RENAME COLUMN because TO cause")
    assert result.exit_code == 1
    found = by_check(result)
    assert (found["dead letters"], found["running"]) == (["problem"], ["ok"])


def test_a_job_that_is_due_and_served_by_nobody_is_told(live):
    live.enqueue(queue="mail", delay=timedelta(days=1))
    assert live.run("doctor").exit_code == 1  # the shop's clock is behind the host's
