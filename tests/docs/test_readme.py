"""The README's own example, run as it stands there."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
PROMPT_TIMEOUT = 60


def fenced(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        timeout=PROMPT_TIMEOUT,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (code,) = fenced("python")
    (tmp_path / "orders.py").write_text(code)
    return tmp_path


def tidemill(folder, *arguments):
    store = ["--store", "sqlite:///orders.db"]
    return run(folder, "-m", "tidemill", *arguments, *store)


def test_the_example_enqueues_and_a_worker_runs_what_is_due(folder):
    enqueued = run(folder, "orders.py")
    assert enqueued.returncode == 0, enqueued.stderr
    job_id = enqueued.stdout.split()[-1]
    worker = subprocess.Popen(
        [sys.executable, "-m", "tidemill", "worker", "orders:mill"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        result = run(
            folder,
            "-c",
            f"""
from uuid import UUID
from orders import capture, mill, thumbnail
print(mill.jobs.sync.get(UUID({job_id!r})).record.wire_name)
print(thumbnail.sync.enqueue("dog.png").sync.result(timeout=50))
print(capture.sync.enqueue("p-9").sync.result(timeout=50))
""",
        )
    finally:
        worker.send_signal(signal.SIGTERM)
        said, _ = worker.communicate(timeout=PROMPT_TIMEOUT)
    assert result.returncode == 0, result.stderr + said
    assert result.stdout.splitlines()[:2] == ["orders.capture", "None"]
    assert result.stdout.splitlines()[2].startswith("captured p-9 under key ")
    assert worker.returncode == 0, said
    shown = tidemill(folder, "jobs", "show", job_id)
    assert shown.returncode == 0, shown.stderr
    assert "captured p-1 under key " + job_id in shown.stdout
    listed = tidemill(folder, "jobs", "list")
    assert listed.stdout.count("succeeded") >= 3, listed.stdout
    assert listed.stdout.count("scheduled") >= 1, listed.stdout


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
