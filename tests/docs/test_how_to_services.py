"""The examples of the pages on services and on web applications, run as they stand there."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from uuid import UUID

import pytest

from tidemill import Tidemill
from tidemill.store.monitor import ListWorkers

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYIO = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
PATIENCE = 100


def write(page: str, folder: Path) -> dict[str, str]:
    files = dict(BLOCK.findall((ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return files


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
        timeout=PATIENCE,
    )


@contextmanager
def serving(folder: Path, module: str) -> Iterator[Callable[[str], UUID]]:
    """A real server of one of the applications; answers how to post to it."""
    command = ["uvicorn", f"{module}:web", "--uds", "web.sock"]
    server = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, stderr=subprocess.PIPE, text=True
    )

    def post(path: str) -> UUID:
        connection = HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(folder / "web.sock"))
        connection.request("POST", path)
        answer = connection.getresponse().read().decode()
        connection.close()
        return UUID(answer.strip('"'))

    try:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        assert any("Uvicorn running on" in line for line in lines), "it did not start"
        yield post
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE)
        assert server.returncode in {0, -signal.SIGTERM}
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()


class TestServices:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        assert set(write("dependency-injection.md", tmp_path)) == {
            "orders.py",
            "refunds.py",
            "program.py",
            "test_orders.py",
            "by_hand.py",
        }
        return tmp_path

    def test_the_program_runs_a_job_with_its_services(self, folder: Path) -> None:
        ran = run(folder, "program.py")
        assert ran.returncode == 0, ran.stderr
        assert re.fullmatch(r"committed 1 line\np-1 captured under [-0-9a-f]{36}\n", ran.stdout)

    def test_the_jobs_of_the_class_run(self, folder: Path) -> None:
        program = (
            "import asyncio\nfrom refunds import Refunds, mill\n"
            "async def main():\n"
            "    async with mill.worker():\n"
            "        ref = await Refunds.refund_all.enqueue(['p-1', 'p-2'])\n"
            "        print(await ref.result(timeout=60))\n"
            "        for job in (await mill.jobs.list()).jobs[:2]:\n"
            "            print((await mill.client.wait_for_end(job.id, 60)).output)\n"
            "asyncio.run(main())"
        )
        ran = run(folder, "-c", program)
        assert ran.returncode == 0, ran.stderr
        first, *others = ran.stdout.splitlines()
        assert first == "2"
        assert sorted(others) == ["b'\"p-1 refunded\"'", "b'\"p-2 refunded\"'"]

    def test_the_tests_pass(self, folder: Path) -> None:
        (folder / "conftest.py").write_text(ANYIO)
        (folder / "pytest.ini").write_text("[pytest]\nanyio_mode = auto\n")
        ran = run(folder, "-m", "pytest", "-q", "-p", "no:asyncio", "test_orders.py")
        assert "2 passed" in ran.stdout, ran.stdout

    def test_the_scope_by_hand_gives_its_service(self, folder: Path) -> None:
        program = (
            "import asyncio\nfrom by_hand import mill, tell\n"
            "from tidemill.testing import Harness\n"
            "async def main():\n"
            "    async with Harness(mill, start='2026-03-01T00:00Z') as h:\n"
            "        print(await h.perform(tell))\n"
            "asyncio.run(main())"
        )
        ran = run(folder, "-c", program)
        assert (ran.stdout, ran.stderr) == ("2026\n", "")


class TestWebApplications:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        write("web-applications.md", tmp_path)
        return tmp_path

    @pytest.mark.parametrize(("module", "worker"), [("shop", 0), ("hall", 0), ("small", 1)])
    def test_the_application_enqueues_and_runs_the_worker_that_it_says(
        self, folder: Path, module: str, worker: int
    ) -> None:
        mill = Tidemill(f"sqlite:///{folder}/shop.db")
        with serving(folder, module) as post:
            job_id = post("/orders/7")
            if worker:
                end = mill.client.wait_for_end_sync(job_id, PATIENCE, instead="")
                assert end.output == b'"order 7 shipped"'
            assert len(mill.client.perform_sync(ListWorkers(), instead="")) == worker
        assert mill.client.perform_sync(ListWorkers(), instead="") == ()
        mill.close()
