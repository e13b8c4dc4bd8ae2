"""What an SQLite file says of itself, and what its folder and the system say of it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tidemill.adapters.sqlite_channel import Site
from tidemill.adapters.sqlite_look import looking, open_to_look
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.errors import StoreError
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.program import Statement
from tidemill.sql.programs.doctor import examine_database
from tidemill.values.doctor import DatabaseHealth, SessionHealth

PRODUCT: Final = "SQLite"
WATCHED_SECONDS: Final = 1.0
"""A transaction that writes for so long is told of."""
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK_SECONDS: Final = 0.05
_LOCKS: Final = Path("/proc/locks")
_WRITE_LOCK_BYTE: Final = "120"
"""Where in the -shm file the writer's lock is (sqlite.org/walformat.html, section 2.3.2)."""


def examine(site: Site) -> DatabaseHealth:
    """Ask on a connection that can only read, and look at the files without opening them.

    Raises:
        StoreError: the file cannot be read or is no database.
    """
    path = site.settings.path
    with looking(site) as look:
        health = look.run(examine_database(site.env, PRODUCT, str(path)))
    settings = {
        **health.settings,
        "synchronous": site.settings.synchronous,
        "file_bytes": str(_size(path)),
        "wal_bytes": str(_size(Path(f"{path}-wal"))),
        "disk_free_bytes": str(shutil.disk_usage(path.parent).free),
    }
    return replace(health, settings=settings, sessions=_long_writers(path))


def has_tables(path: Path) -> bool | None:
    """Whether a database has our tables; None if that cannot be told.

    It is opened for reading only, so it stays as it is.
    """
    try:
        with closing(open_to_look(path)) as connection:
            executor = SqliteExecutor(connection, Catalogue(SqliteDialect()), lambda: _NO_TIME)
            return bool(executor.step(Statement("find_meta")))
    except (sqlite3.Error, StoreError):
        return None


def writer_of(path: Path, locks: Iterable[str]) -> int | None:
    """The process that holds the write lock of a database in WAL mode; None if nobody does.

    It takes no lock and opens no file: closing one would drop the locks that this process's own
    connections have on it (sqlite.org/howtocorrupt.html, section 2.2).

    Args:
        path: the database file.
        locks: lines of /proc/locks; none where the system has no such list.
    """
    try:
        inode = Path(f"{path}-shm").stat().st_ino
    except OSError:
        return None
    for line in locks:
        match line.split():
            case [_, "POSIX", _, "WRITE", pid, place, start, *_] if (
                start == _WRITE_LOCK_BYTE and place.rpartition(":")[2] == str(inode)
            ):
                return int(pid)
            case _:
                continue
    return None


def _long_writers(path: Path) -> tuple[SessionHealth, ...]:
    """The process that holds the write lock at every look for a second, if there is one."""
    began = time.monotonic()
    holder = writer_of(path, _locks())
    while holder is not None and time.monotonic() - began < WATCHED_SECONDS:
        time.sleep(_LOOK_SECONDS)
        if writer_of(path, _locks()) != holder:
            holder = None
    if holder is None:
        return ()
    return (
        SessionHealth(
            pid=holder,
            application=_program(holder),
            user="",
            state="writing",
            open_for=timedelta(seconds=WATCHED_SECONDS),
            holds="the write lock",
        ),
    )


def _locks() -> list[str]:
    try:
        return _LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _program(pid: int) -> str:
    """What a process is called; not with its arguments, which may hold a password."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
