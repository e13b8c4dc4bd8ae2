"""What a stranger sees first: help, version, and an answer without a wait."""

import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from tidemill.cli.main import cli

HEAVY = ["rich", "sqlite3", "tidemill.adapters", "tidemill.cli.demo.app"]


def commands(group=cli, path=()):
    """Every command with the words that lead to it."""
    yield path, group
    if isinstance(group, click.Group):
        for name in group.list_commands(click.Context(group)):
            yield from commands(group.get_command(click.Context(group), name), (*path, name))


EVERY = [pytest.param(path, command, id=" ".join(path) or "root") for path, command in commands()]


def test_the_commands_are_those_that_the_guide_names():
    assert {" ".join(path) for path, _ in commands()} == {
        "", "demo", "doctor", "jobs", "jobs cancel", "jobs list", "jobs log", "jobs requeue",
        "jobs rerun", "jobs run-now", "jobs show", "migrate", "queues", "queues list",
        "queues pause", "queues resume", "worker",
    }  # fmt: skip


@pytest.mark.parametrize(("path", "command"), EVERY)
def test_help_fits_80_columns_and_names_the_exit_codes(tidemill, path, command):
    result = tidemill(*path, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Exit codes:\n    0  done\n    1  not done" in result.stdout


@pytest.mark.parametrize(("path", "command"), EVERY)
def test_every_option_explains_itself(path, command):
    silent = [
        param.name for param in command.params if isinstance(param, click.Option) and not param.help
    ]
    assert silent == []


@pytest.mark.parametrize(("path", "command"), EVERY[1:])
def test_the_first_sentence_is_whole_in_the_list_of_commands(path, command):
    assert not command.get_short_help_str(limit=66).endswith("...")


def test_version_is_that_of_the_package(tidemill):
    assert tidemill("--version").stdout == f"tidemill {version('tidemill')}\n"


def test_the_module_runs_as_the_script_does():
    ran = subprocess.run(
        [sys.executable, "-m", "tidemill", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"tidemill {version('tidemill')}\n"


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from tidemill.cli.main import cli; cli(['--help'], standalone_mode=False);"
        f"print(*sorted(set(sys.modules) & set({HEAVY})), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stderr.split() == []
