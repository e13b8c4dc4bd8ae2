"""`tidemill worker` as a process: it runs jobs, obeys signals, and refuses what cannot work."""

import inspect
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from datetime import timedelta

import msgspec
import pytest

from tidemill import Tidemill
from tidemill.adapters.sqlite import SqliteStore
from tidemill.cli.worker import worker
from tidemill.lifespan import WorkerOptions
from tidemill.shell.identity import new_id
from tidemill.shell.settings import WorkerSettings
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import GetJob
from tidemill.values.durations import duration
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob

APP = """
import os, pathlib
from tidemill.app import Tidemill
from tidemill.context import JobContext

mill = Tidemill("sqlite:///jobs.db")

def tell(word):
    with open("told", "a") as told:
        told.write(word + "\\n")

@mill.job("greet")
def greet(name: str) -> str:
    tell("greeted")
    return "hello " + name

@mill.job("wait")
async def wait(context: JobContext) -> None:
    tell("waiting")
    await context.wait_cancelled()
"""
MORE = """
from app import mill, tell

@mill.job("more")
def more() -> None:
    tell("more")
"""


CLOSES = """
from contextlib import asynccontextmanager
from app import mill, tell

@asynccontextmanager
async def scope(context):
    yield None

async def close():
    tell("closed")

mill.use_scopes(scope, close=close)
"""


class Folder:
    """A directory with an application, a store, and a pipe that handlers tell things through."""

    def __init__(self, path):
        self.path = path
        (path / "app.py").write_text(APP)
        (path / "more.py").write_text(MORE)
        (path / "closes.py").write_text(CLOSES)
        os.mkfifo(path / "told")
        self.told = os.open(path / "told", os.O_RDWR)
        self.store = SqliteStore(path / "jobs.db")

    def enqueue(self, wire_name, payload=b"{}"):
        job = NewJob(id=JobId(new_id()), wire_name=wire_name, payload=payload)
        self.store.perform_sync(Enqueue((job,)))
        return job.id

    def details(self, job_id):
        return self.store.perform_sync(GetJob(job_id))

    def wait_for_word(self):
        """Block until a handler tells something, and answer it."""
        word = b""
        while not word.endswith(b"\n"):
            word += os.read(self.told, 1)
        return word.decode().strip()

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", "tidemill", "worker", "app:mill", "--lease", "5s", *arguments],
            cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def refused(self, *arguments):
        """The code and the sentence of a worker that does not start."""
        process = self.start(*arguments)
        _, log = process.communicate(timeout=60)
        return process.returncode, log


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path)
    with closing(made.store):
        yield made
    os.close(made.told)


@pytest.fixture
def start(folder):
    """Start workers that are gone when the test is over, however it ends."""
    started = []

    def one(*arguments):
        started.append(folder.start(*arguments))
        return started[-1]

    yield one
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_jobs_until_a_signal_and_exits_with_0(folder, start, number):
    job_id = folder.enqueue("greet", b'{"name":"ada"}')
    process = start()
    assert folder.wait_for_word() == "greeted"
    process.send_signal(number)
    out, log = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert folder.details(job_id).output == b'"hello ada"'
    assert "Traceback" not in log


def test_it_closes_what_services_come_from_after_the_last_attempt(folder, start):
    folder.enqueue("greet", b'{"name":"ada"}')
    process = start("--import", "closes")
    assert folder.wait_for_word() == "greeted"
    process.send_signal(signal.SIGTERM)
    assert folder.wait_for_word() == "closed"
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Stopped." in log


def test_a_shutdown_gives_back_what_does_not_finish(folder, start):
    job_id = folder.enqueue("wait")
    process = start("--grace", "0s")
    assert folder.wait_for_word() == "waiting"
    process.terminate()
    assert process.wait(60) == 0
    assert folder.details(job_id).record.state.value == "ready"


def test_a_second_signal_hurries_the_grace_period(folder, start):
    job_id = folder.enqueue("wait")
    process = start("--grace", "1h", "--json")
    assert folder.wait_for_word() == "waiting"
    process.terminate()
    for line in process.stderr:
        if "nothing more is claimed" in line:
            break
    process.terminate()
    assert process.wait(60) == 0
    assert folder.details(job_id).record.state.value == "ready"


def test_jobs_of_other_modules_are_known_when_they_are_imported(folder, start):
    folder.enqueue("more")
    start("--import", "more")
    assert folder.wait_for_word() == "more"


def test_another_store_that_is_there_can_be_named(folder, start, tmp_path):
    with closing(SqliteStore(tmp_path / "other.db")) as other:
        other.migrate()
        start("--store", f"sqlite:///{tmp_path}/other.db")
        job = NewJob(id=JobId(new_id()), wire_name="greet", payload=b'{"name":"ada"}')
        other.perform_sync(Enqueue((job,)))
        assert folder.wait_for_word() == "greeted"


def test_the_log_is_json_on_request(folder, start):
    process = start("--json")
    events = map(msgspec.json.decode, process.stderr)
    registered = next(event for event in events if "worker" in event)
    assert registered["message"] == f"Registered as worker {registered['worker']}."


OF_THE_COMMAND = {
    "app_name",
    "app_position",
    "store_url",
    "processes",
    "modules",
    "as_json",
    "log_level",
}
"""What is said to the command and not to its worker."""


def test_a_worker_has_the_same_settings_wherever_they_are_said():
    settings = {field.name: field.default for field in fields(WorkerSettings)}
    method = dict(inspect.signature(Tidemill.worker).parameters)
    del method["self"]
    options = {option.name: option.opts for option in worker.params}
    of_worker = {name: said for name, said in options.items() if name not in OF_THE_COMMAND}
    assert method.keys() == settings.keys()
    assert WorkerOptions.__annotations__.keys() == settings.keys()
    assert of_worker == {name: [f"--{name.replace('_', '-')}"] for name in settings}


def test_a_setting_is_by_default_the_same_wherever_it_is_said():
    settings = {field.name: field.default for field in fields(WorkerSettings)}
    given = worker.make_context("worker", ["app:mill"]).params
    assert {name: given[name] for name in settings} == settings
    for name, parameter in inspect.signature(Tidemill.worker).parameters.items():
        if name != "self":
            said = parameter.default
            meant = settings[name]
            assert (duration(said, name) if isinstance(meant, timedelta) else said) == meant


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--store", "memory://"], "inside one process"),
        (["--import", "more.py"], "did you mean more?"),
        (["--lease", "10ms"], "too short"),
        (["--stall-limit", "4s"], "stall_limit"),
        (["--patience", "5"], "--patience"),
        (["--queues", "a=1,b"], "some none"),
        (["--import", "nothing"], "There is no module 'nothing'"),
        (["--concurrency", "0"], "--concurrency"),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(folder, arguments, says):
    code, log = folder.refused(*arguments)
    assert code == 2
    assert says in log
    assert "Traceback" not in log


def test_another_store_that_is_not_there_is_not_made(folder):
    code, log = folder.refused("--store", "sqlite:///nope.db")
    assert code == 3
    assert f"There is no database {folder.path}/nope.db." in log
    assert "`tidemill migrate --store sqlite:///nope.db`" in log
    assert not (folder.path / "nope.db").exists()


def test_the_environment_does_not_replace_the_store_of_an_app(folder, start, monkeypatch):
    monkeypatch.setenv("TIDEMILL_STORE", "sqlite:///other.db")
    folder.enqueue("greet", b'{"name":"ada"}')
    start()
    assert folder.wait_for_word() == "greeted"
    assert not (folder.path / "other.db").exists()
