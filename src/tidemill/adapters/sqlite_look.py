"""Looking at an SQLite file and changing nothing: no row, no setting, and no file beside it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from tidemill.adapters.sqlite_channel import Site
from tidemill.adapters.sqlite_files import BUSY_TIMEOUT
from tidemill.adapters.sqlite_forks import calls_sqlite
from tidemill.drivers.run import run
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.drivers.sqlite_errors import translated
from tidemill.sql.program import Program
from tidemill.sql.programs.registry import program_for
from tidemill.store.contract import Operation

R = TypeVar("R")

QUESTION: Final = timedelta(seconds=10)
"""How long one question may take."""
_STEPS: Final = 1_000
"""After so many steps of SQLite's machine, some microseconds, the time is looked at."""


class Look:
    """One connection that only reads."""

    def __init__(self, site: Site, connection: sqlite3.Connection) -> None:
        self._env = site.env
        self._connection = connection
        self._executor = SqliteExecutor(connection, site.catalogue, site.clock)

    def perform(self, operation: Operation[R]) -> R:
        """Perform an operation that reads.

        Raises:
            StoreError: it took longer than it may, or would write.
        """
        return self.run(program_for(operation, self._env))

    @calls_sqlite
    def run(self, program: Program[R]) -> R:
        """Run a program that reads. Raises StoreError, as `perform` does."""
        until = time.monotonic() + QUESTION.total_seconds()
        self._connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        return run(program, self._executor, write=False)


@contextmanager
def looking(site: Site) -> Generator[Look]:
    """A connection that only reads, for the calling thread.

    Raises:
        StoreError: the file cannot be opened or is no database.
    """
    path = site.settings.path
    try:
        connection = open_to_look(path, site.settings.busy_timeout)
    except sqlite3.Error as error:
        raise translated(error, f"open {path}") from error
    with closing(connection):
        yield Look(site, connection)


def open_to_look(path: Path, busy_timeout: timedelta = BUSY_TIMEOUT) -> sqlite3.Connection:
    """Open a file so that it stays as it is, and so does what lies beside it.

    Where a log lies there, or the journal of a transaction that was cut off, only a connection
    that may not write leaves it alone. Where none does, only one that might write takes away again
    the empty log that every connection to a file in WAL mode makes (sqlite.org/wal.html).

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    left = any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-journal"))
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if left else 'rw'}",
        uri=True,
        timeout=busy_timeout.total_seconds(),
        isolation_level=None,
    )
    connection.execute("PRAGMA query_only = 1")
    return connection
