"""What an error of `sqlite3` means to a caller.

* busy, locked, disk full, an error of the disk: `StoreUnavailable`; the transaction left no trace
  and may be tried again. Only where the disk failed at a commit nobody knows: `AnswerLost`.
* a value that the database refuses (a constraint, a type, a size): `InvalidValue`, a refusal;
  trying again cannot help, and a node splits its batch.
* tables missing or different: `SchemaError`.
* read-only, not openable, damaged, and all else: `StoreError`, with what to look at.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from tidemill.errors import (
    AnswerLost,
    InvalidValue,
    SchemaError,
    StoreError,
    StoreUnavailable,
    TidemillError,
)
from tidemill.values.urls import migrating

_PRIMARY: Final = 0xFF
BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DISK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_COMMIT: Final = "commit"
_REFUSED: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH}
)
_ADVICE: Final = {
    sqlite3.SQLITE_READONLY: "The file is read-only: its mode must let this process write.",
    sqlite3.SQLITE_PERM: "The file's mode does not let this process in.",
    sqlite3.SQLITE_CANTOPEN: "The file cannot be opened: its folder must exist and be writable.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged: stop writing, and restore a copy.",
    sqlite3.SQLITE_INTERRUPT: "It took longer than it may, and was given up.",
    sqlite3.SQLITE_NOTADB: "The file is not an SQLite database: check the path.",
}
_NO_SCHEMA: Final = ("no such table", "no such column", "has no column")


def disk_failed(error: Exception) -> bool:
    """Whether the disk did not take, or did not give, what was asked of it."""
    return primary_code(error) in _DISK


def translated(error: Exception, doing: str) -> TidemillError:
    """The error to raise in place of `error`, which came up while `doing`."""
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return InvalidValue(f"SQLite cannot hold a value of {doing!r}: {error}.")
    primary = primary_code(error)
    if primary in _DISK:
        return _of_the_disk(error, primary, doing)
    if primary in BUSY:
        return StoreUnavailable(
            f"The database is busy: {doing!r} waited for another writer as long as it may. "
            "Keep the application's write transactions short."
        )
    if primary in _REFUSED:
        return InvalidValue(f"SQLite refused a value of {doing!r}: {error}.")
    if primary == sqlite3.SQLITE_ERROR and str(error).startswith(_NO_SCHEMA):
        return SchemaError(f"The schema does not fit ({error}): run `{migrating()}`.")
    if primary is None and isinstance(error, sqlite3.ProgrammingError):
        return _misused(error, doing)
    advice = _ADVICE.get(primary or 0, "Look at the error's own text.")
    return StoreError(f"SQLite failed at {doing!r}: {error}. {advice}")


def primary_code(error: BaseException) -> int | None:
    """The kind of an error of SQLite; None where SQLite has not answered with one."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY


def _of_the_disk(error: Exception, code: int | None, doing: str) -> TidemillError:
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(
            f"The disk is full, or the file has reached its bound, at {doing!r}: {error}. Nothing "
            "was stored; make room, and work goes on."
        )
    message = f"The disk reports an error at {doing!r}: {error}. Look at the system's log."
    return AnswerLost(message) if doing == _COMMIT else StoreUnavailable(message)


def _misused(error: sqlite3.ProgrammingError, doing: str) -> TidemillError:
    if "closed" in str(error):
        return StoreError(f"The connection was closed before {doing!r}.")
    return InvalidValue(f"SQLite cannot hold a value of {doing!r}: {error}.")
