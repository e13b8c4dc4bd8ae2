"""Where an SQLite store lives, and how a connection to it is opened."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote

from tidemill.drivers.sqlite_errors import translated
from tidemill.errors import ConfigurationError, StoreError
from tidemill.values.durations import duration

Synchronous = Literal["NORMAL", "FULL"]
NORMAL: Final = "NORMAL"
FULL: Final = "FULL"
FileIdentity = tuple[int, int]
"""The device and the inode of a file: another file at the same path has others."""

BUSY_TIMEOUT: Final = timedelta(seconds=2)
SCHEME: Final = "sqlite:///"
PARAMETERS: Final = ("synchronous", "busy_timeout")
"""What a URL may say about how its file is used."""

_MOUNTS: Final = Path("/proc/mounts")
_NETWORK: Final = frozenset({
    "afs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """How connections are opened.

    Attributes:
        path: the database file.
        synchronous: NORMAL keeps the database whole in a power cut and may lose the last commits;
            FULL loses none, at a sync of the disk for each.
        busy_timeout: how long one try waits for the write lock.
    """

    path: Path
    synchronous: Synchronous
    busy_timeout: timedelta


def path_of(url: str) -> Path:
    """The file of `sqlite:///relative.db` or `sqlite:////absolute.db`, whatever else it says.

    Raises:
        ConfigurationError: another scheme, or no file.
    """
    if not url.startswith(SCHEME) or "#" in url:
        message = (
            f"{url!r} is no SQLite store: write sqlite:///relative.db or sqlite:////absolute.db."
        )
        raise ConfigurationError(message)
    return checked_path(unquote(url.removeprefix(SCHEME).partition("?")[0]))


def settings_of(url: str) -> Settings:
    """The file that a URL names, and how it is to be used.

    Raises:
        ConfigurationError: another scheme, no file, an unknown parameter or one given twice, or a
            value that it cannot have.
    """
    path = path_of(url)
    said: dict[str, str] = {}
    for name, value in parse_qsl(url.partition("?")[2], keep_blank_values=True):
        if name not in PARAMETERS or name in said:
            fault = "is given twice" if name in said else "is not known"
            message = (
                f"The parameter {name!r} of {url!r} {fault}; known are {', '.join(PARAMETERS)}."
            )
            raise ConfigurationError(message)
        said[name] = value
    return Settings(
        path, _synchronous(said.get("synchronous")), _busy_timeout(said.get("busy_timeout"))
    )


def _synchronous(said: str | None) -> Synchronous:
    match said and said.upper():
        case None | "NORMAL":
            return NORMAL
        case "FULL":
            return FULL
        case _:
            message = f"synchronous={said!r} cannot work: it is NORMAL (default) or FULL."
            raise ConfigurationError(message)


def _busy_timeout(said: str | None) -> timedelta:
    wait = BUSY_TIMEOUT if said is None else duration(said, "busy_timeout")
    if wait <= timedelta(0):
        message = f"busy_timeout={said!r} cannot work: it must be longer than nothing."
        raise ConfigurationError(message)
    return wait


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The file of a store.

    Raises:
        ConfigurationError: it names no file, or one on a network file system.
    """
    text = os.fspath(path)
    if text in {"", ":memory:"} or text.startswith("file:"):
        message = (
            f"{text!r} is not a file on disk. A store outlives its connections, so an in-memory "
            "database cannot be one: give a file, or use the memory store in tests."
        )
        raise ConfigurationError(message)
    file = Path(text)
    refuse_network(file, _mounts())
    return file


def refuse_network(path: Path, mounts: Iterable[str]) -> None:
    """Refuse a file whose locks and shared memory other hosts would not see.

    Args:
        path: the file.
        mounts: lines of /proc/mounts; none where the system has no such list.

    Raises:
        ConfigurationError: the file is on a network file system (sqlite.org/wal.html, section 1).
    """
    where = path.absolute().resolve()
    kind, longest = "", -1
    for line in mounts:
        fields = line.split()
        if len(fields) < 3:  # noqa: PLR2004 - device, folder, type
            continue
        folder = Path(fields[1].replace("\\040", " "))
        if where.is_relative_to(folder) and len(folder.parts) >= longest:
            kind, longest = fields[2], len(folder.parts)
    if kind in _NETWORK:
        message = (
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold. "
            "Put the file on a local disk, or use a database server."
        )
        raise ConfigurationError(message)


def identity(path: Path) -> FileIdentity | None:
    """Which file is there now; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def connect(settings: Settings, *, create: bool = True) -> sqlite3.Connection:
    """Open a connection in autocommit mode, in WAL mode; make the file if it may be made.

    Raises:
        StoreError: the file cannot be opened or is no database.
    """
    mode = "rwc" if create else "rw"
    try:
        connection = sqlite3.connect(
            f"{settings.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=settings.busy_timeout.total_seconds(),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except sqlite3.Error as error:
        raise translated(error, f"open {settings.path}") from error
    try:
        _set_up(connection, settings)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise translated(error, f"open {settings.path}") from error
        raise
    return connection


def _set_up(connection: sqlite3.Connection, settings: Settings) -> None:
    # Asked first, since setting the mode takes a lock even where it is set already.
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        message = (
            f"{settings.path} cannot be put into WAL mode (it stays in {mode!r}); "
            "the file system or another connection does not allow it."
        )
        raise StoreError(message)
    connection.execute(f"PRAGMA synchronous = {settings.synchronous}")


def _mounts() -> list[str]:
    try:
        return _MOUNTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
