"""What the README shows and claims, run as it stands there."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill import Retry, Tidemill
from tidemill.core.poison import is_poison
from tidemill.store.monitor import CountJobs

README = Path(__file__).parents[2] / "README.md"
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
PROMPT_TIMEOUT = 60


def fenced(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        timeout=PROMPT_TIMEOUT, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    code, _ = fenced("python")
    (tmp_path / "orders.py").write_text(code)
    return tmp_path


@pytest.fixture
def worker(folder):
    """The worker of the README, until it is told to stop."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tidemill", "worker", "orders:mill"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    yield started
    if started.poll() is None:
        started.kill()
        started.communicate()


def stopped(worker):
    """How it ended, and what it said."""
    worker.send_signal(signal.SIGTERM)
    said, _ = worker.communicate(timeout=PROMPT_TIMEOUT)
    return worker.returncode, said


def enqueued(folder):
    """The id of the job that the first example enqueues."""
    ran = run(folder, "orders.py")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()[-1]


def test_the_example_enqueues_and_a_worker_runs_what_is_due(folder, worker):
    job_id = enqueued(folder)
    wait = (
        f"from orders import mill; mill.client.wait_for_end_sync(UUID({job_id!r}), 50, instead='')"
    )
    ended = run(folder, "-c", f"from uuid import UUID; {wait}")
    code, said = stopped(worker)
    assert (ended.returncode, code) == (0, 0), ended.stderr + said
    environment = {"TIDEMILL_STORE": "sqlite:///orders.db"}
    shown = run(folder, "-m", "tidemill", "jobs", "show", job_id, **environment)
    assert "captured p-1 under key " + job_id in shown.stdout
    listed = run(folder, "-m", "tidemill", "jobs", "list", **environment)
    assert listed.stdout.count("succeeded") >= 1, listed.stdout
    assert listed.stdout.count("scheduled") == 1, listed.stdout


def test_the_async_example_prints_what_came_of_its_jobs(folder, worker):
    _, code = fenced("python")
    asked = run(folder, "-c", code)
    assert (asked.returncode, stopped(worker)[0]) == (0, 0), asked.stderr
    result, line = asked.stdout.splitlines()
    assert result.startswith("captured p-3 under key ")
    assert line == "succeeded in attempt 1"


@pytest.mark.parametrize(("parameter", "level"), [("", 1), ("?synchronous=FULL", 2)])
def test_the_url_decides_whether_a_power_cut_may_undo_the_last_commits(
    tmp_path, monkeypatch, parameter, level
):
    monkeypatch.chdir(tmp_path)
    if parameter:
        assert f'`Tidemill("sqlite:///orders.db{parameter}")`' in README.read_text()
    levels = []
    opening = sqlite3.connect

    def noting(*arguments, **options):
        connection = opening(*arguments, **options)
        levels.append(connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", noting)
    mill = Tidemill(f"sqlite:///orders.db{parameter}")
    with mill.store.dedicated() as channel:
        channel.perform(CountJobs())
        found = {each.execute("PRAGMA synchronous").fetchone()[0] for each in levels[-1:]}
    mill.close()
    assert found == {level}


def test_the_default_policy_forgives_ten_lapses():
    text = " ".join(README.read_text().split())
    assert "Ten lapses are forgiven; with the eleventh it is `dead`" in text
    assert [is_poison(Retry(), lapses) for lapses in (10, 11)] == [False, True]


def test_every_command_of_the_readme_exists(folder):
    commands = [line for block in fenced("console") for line in COMMAND.findall(block)]
    named = [line.split("#")[0].split() for line in commands if line.startswith("tidemill ")]
    assert ["tidemill", "worker", "orders:mill"] in named
    for _, *words in named:
        verbs = [word for word in words if word.isalpha()]
        helped = run(folder, "-m", "tidemill", *verbs, "--help")
        assert helped.returncode == 0, helped.stderr
    makefile = (README.parent / "Makefile").read_text()
    for line in commands:
        if line.startswith("make "):
            target = line.split()[1]
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
