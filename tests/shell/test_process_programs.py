"""Handlers in processes, in whole programs: killed workers, signals to a group, main modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")

PROGRAM = """
import ctypes, logging, os, sys
from pathlib import Path
from tidemill import JobContext, Retry, Tidemill
from tidemill.shell.process import run_process

mill = Tidemill("sqlite:///jobs.db")

def tell(text):
    Path("part").write_text(text)
    Path("part").replace("told")

@mill.job("deaf", executor="process", retry=Retry.never())
def deaf() -> None:
    tell(f"{os.getpid()} {__name__}")
    ctypes.PyDLL(None).sleep(3600)

@mill.job("patient", executor="process", retry=Retry.never())
def patient(context: JobContext) -> None:
    tell(f"{os.getpid()} {__name__}")
    context.sync.wait_cancelled(3600)

@mill.job("short", executor="process", retry=Retry.never())
def short(opens: str) -> str:
    tell(f"{os.getpid()} {__name__}")
    return Path(opens).read_text()

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    mill.store.migrate()
    if sys.argv[1] == "short":
        os.mkfifo("opens")
        ref = short.sync.enqueue("opens")
    else:
        ref = {"deaf": deaf, "patient": patient}[sys.argv[1]].sync.enqueue()
    run_process(mill.worker(lease="2s"))
    print(mill.jobs.sync.get(ref).state.value, flush=True)
    mill.close()
"""


class Started:
    """A program with a worker, and the process that its handler runs in."""

    def __init__(self, folder: Path, job: str, *arguments: str):
        (folder / "program.py").write_text(PROGRAM)
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, *(arguments or ("program.py",)), job],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip
        wait_until((folder / "told").exists)
        pid, self.module = (folder / "told").read_text().split()
        self.pid = int(pid)

    @property
    def handler_is_gone(self):
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except FileNotFoundError:
            return True


@pytest.fixture
def start(tmp_path):
    started = []

    def one(*arguments):
        started.append(Started(tmp_path, *arguments))
        return started[-1]

    yield one
    for each in started:
        each.process.kill()
        if not each.handler_is_gone:
            os.kill(each.pid, signal.SIGKILL)
        each.process.communicate()


@pytest.mark.parametrize("job", ["deaf", "patient"])
def test_a_handler_process_does_not_outlive_a_worker_that_is_killed(start, job):
    started = start(job)
    assert not started.handler_is_gone
    started.process.kill()
    wait_until(lambda: started.handler_is_gone)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_lets_a_handler_in_a_process_finish(start, number):
    started = start("short")
    os.killpg(started.process.pid, number)
    os.kill(started.pid, number)
    for line in started.process.stderr:
        if "nothing more is claimed" in line:
            break
    (started.folder / "opens").write_text("done")
    out, _ = started.process.communicate(timeout=60)
    assert (out, started.process.returncode) == ("succeeded\n", 0)
    assert started.handler_is_gone


def pack(folder: Path, as_what: str) -> str:
    """The program as a directory or an archive that can be run."""
    (folder / "packed").mkdir()
    (folder / "packed" / "__main__.py").write_text(PROGRAM)
    if as_what == "directory":
        return "packed"
    zipapp.create_archive(folder / "packed", folder / "packed.pyz")
    return "packed.pyz"


@pytest.mark.parametrize("as_what", ["script", "module", "directory", "archive"])
def test_an_app_in_the_main_program_is_found_however_that_is_run(start, tmp_path, as_what):
    plain = {"script": ("program.py",), "module": ("-m", "program")}
    started = start("short", *(plain.get(as_what) or (pack(tmp_path, as_what),)))
    assert started.module == "__mp_main__"
    (started.folder / "opens").write_text("done")
    started.process.terminate()
    out, _ = started.process.communicate(timeout=60)
    assert out == "succeeded\n"


def test_a_program_that_no_process_could_run_again_is_refused_when_its_worker_starts(tmp_path):
    done = subprocess.run(
        [sys.executable, "-", "short"],
        cwd=tmp_path, input=PROGRAM, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "DeclarationError" in done.stderr
    assert "<stdin>" in done.stderr
    assert "into a module" in done.stderr
