"""`tidemill worker` to its very end: late signals, several processes, a killed supervisor."""

import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest
from tests.waiting import wait_until

from tidemill.adapters.sqlite import SqliteStore
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import GetJob, ListWorkers
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob

pytestmark = pytest.mark.skipif(os.name != "posix", reason="supervised processes need POSIX")

APP = """
import atexit, os
from pathlib import Path

if os.path.exists("import"):
    Path("importing").touch()
    try:
        open("import").read()
    except BaseException:
        if os.path.exists("swallow"):
            Path("swallowed").touch()
        else:
            raise

from tidemill import JobContext, Tidemill

mill = Tidemill("sqlite:///jobs.db")

@mill.job("wait")
async def wait(context: JobContext) -> None:
    Path(f"waiting-{os.getpid()}").touch()
    await context.wait_cancelled()

@atexit.register
def last() -> None:
    if os.path.exists("exit"):
        Path("exiting").touch()
        open("exit").read()
"""


class Folder:
    def __init__(self, path):
        self.path = path
        (path / "app.py").write_text(APP)
        self.store = SqliteStore(path / "jobs.db")
        self.store.migrate()

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", "tidemill", "worker", "app:mill", *arguments],
            cwd=self.path, stderr=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip

    def enqueue(self):
        job = NewJob(id=JobId(new_id()), wire_name="wait")
        self.store.perform_sync(Enqueue((job,)))
        return job.id

    def state(self, job_id):
        return self.store.perform_sync(GetJob(job_id)).state.value

    def workers(self):
        return self.store.perform_sync(ListWorkers())

    def waiting(self):
        return {int(path.name.removeprefix("waiting-")) for path in self.path.glob("waiting-*")}


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path)
    with closing(made.store):
        yield made


@pytest.fixture
def start(folder):
    started = []

    def one(*arguments):
        started.append(folder.start(*arguments))
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.communicate()


def test_a_signal_after_the_end_does_not_spoil_the_exit_code(folder, start):
    os.mkfifo(folder.path / "exit")
    process = start()
    wait_until(folder.workers)
    process.terminate()
    wait_until((folder.path / "exiting").exists)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    (folder.path / "exit").write_text("")
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Stopped." in log
    assert "Traceback" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_worker_that_is_told_to_end_while_it_loads_ends_in_order(
    folder, start, number, swallowed
):
    os.mkfifo(folder.path / "import")
    if swallowed:
        (folder.path / "swallow").touch()
    process = start()
    wait_until((folder.path / "importing").exists)
    process.send_signal(number)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "before it had started" in log
    assert "Registered" not in log
    assert "Traceback" not in log
    assert (folder.path / "swallowed").exists() == swallowed


def test_a_terminal_that_goes_ends_a_worker_in_order_but_for_nohup(folder, start):
    process = start()
    wait_until(folder.workers)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    assert not folder.workers()
    ignored = subprocess.Popen(
        ["nohup", sys.executable, "-m", "tidemill", "worker", "app:mill"],
        cwd=folder.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(folder.workers)
    ignored.send_signal(signal.SIGHUP)
    ignored.terminate()
    _, log = ignored.communicate(timeout=60)
    assert (ignored.returncode, log.count("Ending:"), log.count("Hurrying")) == (0, 1, 0)


def test_processes_are_workers_of_their_own_and_end_with_their_supervisor(folder, start):
    process = start("--processes", "2", "--concurrency", "1")
    wait_until(lambda: len(folder.workers()) == 2)
    assert len({worker.id for worker in folder.workers()}) == 2
    assert len({worker.pid for worker in folder.workers()}) == 2
    assert process.pid not in {worker.pid for worker in folder.workers()}
    jobs = [folder.enqueue() for _ in range(2)]
    wait_until(lambda: len(folder.waiting()) == 2)
    process.terminate()
    for line in process.stderr:
        if "Ending 2 worker processes" in line:
            break
    process.terminate()
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert not folder.workers()
    assert [folder.state(job_id) for job_id in jobs] == ["ready", "ready"]
    assert sorted(re.findall(r"\[(\d)\] Stopped", log)) == ["1", "2"]


def test_a_signal_to_all_processes_at_once_hurries_none_of_them(folder, start):
    process = start("--processes", "2", "--concurrency", "1", "--grace", "1h")
    job_id = folder.enqueue()
    wait_until(folder.waiting)
    wait_until(lambda: len(folder.workers()) == 2)
    (busy,) = folder.waiting()
    (idle,) = {worker.pid for worker in folder.workers()} - {busy}
    for pid in (process.pid, busy, idle):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: [worker.pid for worker in folder.workers()] == [busy])
    assert folder.state(job_id) == "running"
    process.terminate()
    _, log = process.communicate(timeout=60)
    assert (process.returncode, log.count("Hurrying: ")) == (0, 1)


def test_a_killed_supervisor_leaves_workers_that_end_in_order(folder, start):
    process = start("--processes", "2", "--grace", "0s")
    job_id = folder.enqueue()
    wait_until(folder.waiting)
    wait_until(lambda: len(folder.workers()) == 2)
    process.kill()
    wait_until(lambda: not folder.workers())
    assert folder.state(job_id) == "ready"
    _, log = process.communicate(timeout=60)
    assert log.count("Ending because the supervisor is gone: ") == 2


def test_workers_that_cannot_use_their_store_end_the_supervisor(folder, start):
    process = start("--processes", "2", "--store", "sqlite:///missing.db")
    _, log = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "There is no database" in log
    assert "No worker process can use the store; ending." in log


def test_a_killed_worker_is_replaced_by_one_with_another_identity(folder, start):
    process = start("--processes", "2")
    wait_until(lambda: len(folder.workers()) == 2)
    before = {worker.id: worker.pid for worker in folder.workers()}
    os.kill(next(iter(before.values())), signal.SIGKILL)
    wait_until(lambda: {worker.id for worker in folder.workers()} - set(before))
    process.terminate()
    assert process.wait(60) == 0


def test_what_cannot_work_ends_the_supervisor_with_the_same_code(folder, start):
    process = start("--processes", "2", "--lease", "10ms")
    _, log = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "too short" in log
    assert "Traceback" not in log
