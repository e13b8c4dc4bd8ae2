"""How a command is told its application: by position, by --app, or by TIDEMILL_APP."""

import sys

import pytest

APP = """
from tidemill import Tidemill

mill = Tidemill("sqlite:///orders.db")
"""


@pytest.fixture
def name(tmp_path, monkeypatch):
    """An application in the current directory that no other test imports."""
    module = f"named_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield f"{module}:mill"
    sys.modules.pop(module, None)


def ways(name):
    """The arguments and the environment of every way."""
    return [([name], {}), (["--app", name], {}), ([], {"TIDEMILL_APP": name})]


def test_migrate_takes_it_in_every_way(tidemill, name, tmp_path):
    for arguments, environment in ways(name):
        assert tidemill("migrate", *arguments, env=environment).exit_code == 0
    assert (tmp_path / "orders.db").exists()


def test_doctor_takes_it_in_every_way_and_names_it_in_its_advice(tidemill, name):
    tidemill("migrate", name)
    for arguments, environment in ways(name):
        result = tidemill("doctor", *arguments, env=environment)
        assert result.exit_code == 0, result.stdout
        assert f"Start one: `tidemill worker {name}`." in result.stdout


def test_worker_takes_it_in_every_way(tidemill, name):
    for arguments, environment in ways(name):
        result = tidemill("worker", *arguments, "--lease", "10ms", env=environment)
        assert (result.exit_code, "too short" in result.stderr) == (2, True), result.stderr


def test_a_worker_without_an_application_says_how_to_name_it(tidemill):
    result = tidemill("worker")
    assert result.exit_code == 2
    assert "`tidemill worker MODULE:ATTRIBUTE`, or set TIDEMILL_APP." in result.stderr


@pytest.mark.parametrize("command", ["migrate", "doctor", "worker"])
def test_two_applications_are_refused(tidemill, name, command):
    result = tidemill(command, name, "--app", "other:mill")
    assert result.exit_code == 2
    assert f"Two applications are named, {name} and, by --app, other:mill" in result.stderr


@pytest.mark.parametrize("command", ["jobs", "queues"])
def test_a_list_to_which_it_is_given_by_position_says_how_to_name_it(tidemill, name, command):
    result = tidemill(command, "list", name)
    assert result.exit_code == 2
    assert f"Name the application with --app {name}." in result.stderr


def test_a_list_takes_no_other_argument_either(tidemill):
    result = tidemill("jobs", "list", "payments")
    assert result.exit_code == 2
    assert "This command takes no argument, and 'payments' is one." in result.stderr
