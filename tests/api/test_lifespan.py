"""The app in the life of a web application: open as long as that, with a worker or without."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.waiting import until

from tidemill import Tidemill
from tidemill.errors import ConfigurationError, DeclarationError, SchemaError, StoreError
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.store.monitor import ListWorkers

PATIENCE = 60


@pytest.fixture
def mill(tmp_path: Path) -> Tidemill:
    return Tidemill(f"sqlite:///{tmp_path}/jobs.db")


def is_open(mill: Tidemill) -> bool:
    return mill._store is not None


@asynccontextmanager
async def served(lifespan: Any) -> AsyncGenerator[None]:
    """What a server does with the lifespan of a web application, by the protocol."""
    web = FastAPI(lifespan=lifespan)
    async with web.router.lifespan_context(web):
        yield


async def test_the_client_is_open_from_start_to_end_and_nothing_runs_jobs(mill: Tidemill) -> None:
    async with served(mill.lifespan):
        assert is_open(mill)
        assert await mill.client.perform(ListWorkers()) == ()
    assert not is_open(mill)


async def test_it_is_a_block_as_well(mill: Tidemill) -> None:
    @mill.job("greet")
    def greet() -> None: ...

    async with mill.lifespan():
        await greet.enqueue()
    assert not is_open(mill)
    async with mill.lifespan():
        assert len((await mill.jobs.list()).jobs) == 1


async def test_of_several_lifespans_the_last_to_end_closes_the_client(mill: Tidemill) -> None:
    @mill.job("greet")
    async def greet() -> str:
        return "hello"

    async with served(mill.lifespan_with_worker()):
        async with served(mill.lifespan):  # another web application in the same process
            pass
        assert is_open(mill)
        ref = await greet.enqueue()
        assert await ref.result(timeout=PATIENCE) == "hello"
    assert not is_open(mill)


async def test_a_lifespan_that_does_not_start_leaves_another_one_open(mill: Tidemill) -> None:
    @mill.job("greet")
    def greet(name: Nowhere) -> None: ...  # noqa: F821 - that it does not exist is the point

    async with served(mill.lifespan):
        with pytest.raises(DeclarationError, match="'Nowhere'"):
            async with served(mill.lifespan_with_worker()):
                pytest.fail("it started")
        assert is_open(mill)
    assert not is_open(mill)


async def test_a_database_that_cannot_be_used_fails_at_the_start(tmp_path: Path) -> None:
    mill = Tidemill(f"sqlite:///{tmp_path}/nowhere/jobs.db")
    with pytest.raises(StoreError, match="nowhere"):
        async with served(mill.lifespan):
            pytest.fail("it started")
    assert not is_open(mill)


async def test_an_app_without_a_store_fails_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMILL_STORE", raising=False)
    with pytest.raises(ConfigurationError, match="no store yet"):
        async with served(Tidemill().lifespan):
            pytest.fail("it started")


async def test_a_worker_runs_jobs_while_the_application_is_served(mill: Tidemill) -> None:
    @mill.job("greet", queue="mail")
    async def greet(name: str) -> str:
        return f"hello {name}"

    async with served(mill.lifespan_with_worker(queues=["mail"], concurrency=2)):
        ref = await greet.enqueue("ada")
        assert await ref.result(timeout=PATIENCE) == "hello ada"
        (worker,) = await mill.client.perform(ListWorkers())
        assert (worker.queues, worker.slots) == (("mail",), 2)
    assert not is_open(mill)
    async with mill.lifespan():
        assert await mill.client.perform(ListWorkers()) == ()


async def test_the_end_waits_for_handlers_before_the_client_is_closed(mill: Tidemill) -> None:
    seen: list[bool] = []

    @mill.job("slow")
    async def slow() -> None:
        seen.append(False)
        await until(lambda: repr(workers[0]).endswith("ending>"))
        assert await mill.jobs.counts()
        seen[0] = True

    workers: list[Any] = []
    making = mill.worker

    def noting(**settings: Any) -> Any:
        workers.append(making(**settings))
        return workers[0]

    mill.worker = noting  # type: ignore[method-assign]
    async with served(mill.lifespan_with_worker()):
        ref = await slow.enqueue()
        await until(lambda: seen)
    assert seen == [True]
    async with mill.lifespan():
        assert (await mill.jobs.get(ref)).record.state == "succeeded"


async def test_a_job_that_cannot_run_fails_at_the_start(mill: Tidemill) -> None:
    @mill.job("greet")
    def greet(name: Nowhere) -> None: ...  # noqa: F821 - that it does not exist is the point

    with pytest.raises(DeclarationError, match="'Nowhere'"):
        async with served(mill.lifespan_with_worker()):
            pytest.fail("it started")
    assert not is_open(mill)


class Outgrown(MemoryStore):
    """Its schema is too new for a worker."""

    def perform_sync(self, operation: Any) -> Any:
        if isinstance(operation, (Register, Beat, Deregister)):
            message = "the schema is for a newer Tidemill"
            raise SchemaError(message)
        return super().perform_sync(operation)


async def test_a_worker_that_dies_is_told_at_once_and_raised_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mill = Tidemill(store=Outgrown(VirtualClock()))

    def told() -> list[logging.LogRecord]:
        return [each for each in caplog.records if each.levelno == logging.CRITICAL]

    async def serve() -> None:
        async with served(mill.lifespan_with_worker()):
            await until(told)
            assert await mill.jobs.counts() == ()  # the application itself goes on

    with pytest.raises(SchemaError, match="newer Tidemill"):
        await serve()
    (record,) = told()
    assert "has ended by a fault and runs no more jobs" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], SchemaError)


WEB = """
import os
from fastapi import FastAPI
from tidemill import Tidemill

mill = Tidemill("sqlite:///jobs.db")
web = FastAPI(lifespan=mill.lifespan_with_worker(queues=["default"], poll_interval="50ms"))


@mill.job("ship")
def ship(order: int) -> str:
    with open("started", "w") as started:
        started.write("x")
    with open("go") as go:
        go.read()
    return f"shipped {order}"


@web.post("/orders/{order}")
async def place(order: int) -> str:
    return str((await ship.enqueue(order)).id)
"""


class Server:
    """A real server of the application above, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "web.py").write_text(WEB)
        for name in ("started", "go"):
            os.mkfifo(folder / name)
        command = ["uvicorn", "web:web", "--uds", "web.sock", "--log-level", "info"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, stderr=subprocess.PIPE, text=True
        )

    def wait_for_line(self, part: str) -> None:
        assert self.process.stderr is not None
        seen = []
        for line in self.process.stderr:
            seen.append(line)
            if part in line:
                return
        pytest.fail("".join(seen))

    def post(self, path: str) -> str:
        connection = HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.folder / "web.sock"))
        connection.request("POST", path)
        answer = connection.getresponse().read().decode()
        connection.close()
        return answer.strip('"')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.communicate()


async def test_a_served_request_enqueues_and_sigterm_lets_the_worker_finish(
    server: Server,
) -> None:
    server.wait_for_line("Uvicorn running on")
    job_id = server.post("/orders/7")
    (server.folder / "started").read_text()  # the worker in the same process runs it
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("Waiting for application shutdown")
    (server.folder / "go").write_text("")
    server.process.communicate(timeout=PATIENCE)
    assert server.process.returncode in {0, -signal.SIGTERM}
    mill = Tidemill(f"sqlite:///{server.folder}/jobs.db")
    details = await mill.jobs.get(job_id)
    assert (details.record.state, details.output) == ("succeeded", b'"shipped 7"')
    assert await mill.client.perform(ListWorkers()) == ()
    mill.close()
