"""Where a command finds its store, and what it says when it finds none."""

import sqlite3
import sys
from contextlib import closing

import pytest

APP = """
from tidemill.app import Tidemill

mill = Tidemill("sqlite:///orders.db")
tool = 7

@mill.job("orders.capture")
def capture(payment: str) -> None: ...
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with an application in it that no other test imports."""
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


def test_the_store_of_an_app_in_the_current_directory(tidemill, folder, tmp_path):
    assert tidemill("migrate", "--app", f"{folder}:mill").exit_code == 0
    assert (tmp_path / "orders.db").exists()


def test_an_option_goes_before_the_environment(shop, folder, tidemill):
    shop.enqueue()
    tidemill("migrate", "--app", f"{folder}:mill")
    there = {"TIDEMILL_STORE": shop.url}
    assert len(tidemill("jobs", "list", env=there).stdout.splitlines()) == 2
    of_app = tidemill("jobs", "list", "--app", f"{folder}:mill", env=there)
    assert (of_app.stdout, of_app.stderr) == ("", "No jobs match.\n")
    both = {"TIDEMILL_APP": f"{folder}:mill", **there}
    assert len(tidemill("jobs", "list", env=both).stdout.splitlines()) == 2
    only_app = tidemill("jobs", "list", env={"TIDEMILL_APP": f"{folder}:mill"})
    assert only_app.stderr == "No jobs match.\n"


@pytest.mark.parametrize("environment", [{}, {"TIDEMILL_STORE": ""}])
def test_no_store_at_all_is_a_sentence_that_names_every_way(tidemill, environment):
    result = tidemill("jobs", "list", env=environment)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: No store is named. Give --store URL or --app MODULE:ATTRIBUTE, "
        "or set TIDEMILL_STORE or TIDEMILL_APP.\n"
    )


def test_a_mistyped_path_is_refused_and_makes_no_file(tidemill, tmp_path):
    missing = tmp_path / "typo.db"
    result = tidemill("jobs", "list", "--store", f"sqlite:///{missing}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"There is no database {missing}." in result.stderr
    assert not missing.exists()


def test_a_missing_file_is_told_with_its_whole_path_and_how_to_make_it(tidemill, folder, tmp_path):
    says = f"There is no database {tmp_path}/orders.db. "
    by_url = tidemill("jobs", "list", "--store", "sqlite:///orders.db")
    by_app = tidemill("jobs", "list", "--app", f"{folder}:mill")
    assert (by_url.exit_code, by_app.exit_code) == (3, 3)
    assert says in by_url.stderr
    assert "`tidemill migrate --store sqlite:///orders.db`" in by_url.stderr
    assert says in by_app.stderr
    assert f"`tidemill migrate --app {folder}:mill`" in by_app.stderr
    assert not (tmp_path / "orders.db").exists()


@pytest.mark.parametrize(
    "command", [["jobs", "list"], ["jobs", "cancel", "01a2292d-3349-7000-8000-000000000000"]]
)
@pytest.mark.parametrize("named", ["--store", "--app"])
def test_a_database_of_somebody_else_stays_as_it_is(tidemill, folder, tmp_path, command, named):
    path = tmp_path / "orders.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE letters (text)")
    before = path.read_bytes()
    source = {"--store": "sqlite:///orders.db", "--app": f"{folder}:mill"}[named]
    result = tidemill(*command, named, source)
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"{path}: this database has no Tidemill tables." in result.stderr
    assert f"run `tidemill migrate {named} {source}`" in result.stderr
    assert path.read_bytes() == before
    assert tidemill("migrate", named, source).exit_code == 0
    assert tidemill("jobs", "list", named, source).stderr == "No jobs match.\n"


def test_a_command_does_not_bring_a_schema_up_to_date(shop):
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as db:
        db.execute("UPDATE tidemill_meta SET value = '0' WHERE name = 'version'")
    result = shop.run("jobs", "list")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "run `tidemill migrate --store sqlite:///" in result.stderr


def test_a_file_that_is_no_database_is_exit_code_3(tidemill, tmp_path):
    (tmp_path / "notes.txt").write_text("these are notes, and no database at all " * 50)
    result = tidemill("jobs", "list", "--store", f"sqlite:///{tmp_path}/notes.txt")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "not an SQLite database" in result.stderr


@pytest.mark.parametrize("command", [["jobs", "list"], ["migrate"]])
def test_a_store_in_memory_is_refused(tidemill, command):
    result = tidemill(*command, "--store", "memory://")
    assert result.exit_code == 2
    assert "inside one process" in result.stderr


def test_a_password_in_a_url_is_not_repeated(tidemill):
    result = tidemill("jobs", "list", "--store", "oracle://scott:tiger@db/jobs")
    assert result.exit_code == 2
    assert "oracle://" in result.stderr
    assert "tiger" not in result.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("{folder}", "write MODULE:ATTRIBUTE"),
        ("{folder}:", "write MODULE:ATTRIBUTE"),
        ("{folder}:app", "{folder}:app does not exist"),
        ("{folder}:app", "{folder} has mill."),
        ("{folder}:tool", "{folder}:tool is of type int"),
        ("{folder}:mill.nothing", "{folder}:mill.nothing does not exist"),
        ("no_such_module:mill", "There is no module 'no_such_module'"),
        ("{folder}.inner:mill", "There is no module '{folder}.inner'"),
        ("{folder}.py:mill", "did you mean {folder}:mill?"),
        ("./{folder}:mill", "did you mean {folder}:mill?"),
        ("./{folder}.py:mill", "did you mean {folder}:mill?"),
        ("src/{folder}.py:mill", "did you mean src.{folder}:mill?"),
        (".{folder}:mill", "did you mean {folder}:mill?"),
    ],
)
def test_an_app_that_is_not_there_is_a_sentence_with_a_way_out(tidemill, folder, name, says):
    result = tidemill("jobs", "list", "--app", name.format(folder=folder))
    assert result.exit_code == 2
    assert says.format(folder=folder) in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_module_that_fails_is_named_with_its_line_and_shown_whole_on_request(
    tidemill, folder, tmp_path
):
    (tmp_path / f"{folder}.py").write_text("x = 1\nraise RuntimeError('no licence')\n")
    result = tidemill("jobs", "list", "--app", f"{folder}:mill")
    assert result.exit_code == 2
    assert f"Importing {folder} failed: RuntimeError: no licence" in result.stderr
    assert "line 2" in result.stderr
    shown = tidemill("--debug", "jobs", "list", "--app", f"{folder}:mill")
    assert str(shown.exception.__cause__) == "no licence"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax ({path}, line 2)."),
        ("x = 1\nimport no_such_part\n", "No module named 'no_such_part' ({path}, line 2)."),
        ("import json\n\njson.loads('{{')\n", "({path}, line 3)."),
    ],
)
def test_a_module_that_fails_shows_the_line_of_its_own_and_nothing_of_the_import_machinery(
    tidemill, folder, tmp_path, text, says
):
    path = tmp_path / f"{folder}.py"
    path.write_text(text)
    result = tidemill("jobs", "list", "--app", f"{folder}:mill")
    assert result.exit_code == 2
    assert says.format(path=path) in result.stderr
    assert "frozen" not in result.stderr
    assert result.stderr.count("line ") <= 2
