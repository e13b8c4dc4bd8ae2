"""What an error in a user's transaction means, where there is something to say about it.

* a lock that was not granted in time: `LockNotGranted`.
* a transaction that has failed before, or may not write: `TransactionRefused`.
* tables that are not there: `SchemaError`.
* a value that the database refuses: `InvalidValue`.

All else passes as the driver raised it, serialization failures and deadlocks before all: whoever
owns the transaction knows what to do about those, as about an error of any other statement in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from tidemill.drivers import postgres_errors, sqlite_errors
from tidemill.errors import (
    LockNotGranted,
    Refused,
    SchemaError,
    TidemillError,
    TransactionRefused,
)
from tidemill.values.urls import migrating

Explain = Callable[[BaseException, str], TidemillError | None]

_AGAIN: Final = "Roll back, and run your transaction again."


@contextmanager
def explaining(explain: Explain, doing: str) -> Generator[None]:
    """Around one step: raise what there is to say of an error in it, or let it pass as it is."""
    try:
        yield
    except Exception as error:
        told = explain(error, doing)
        if told is None:
            raise
        raise told from error


def of_postgres(state: str | None, text: str, doing: str) -> TidemillError | None:
    """The error to raise for an SQLSTATE and its text; None to let the driver's own pass."""
    text = text.strip().partition("\n")[0]  # what follows points into our own statement
    match state:
        case None:
            return None
        case "55P03":
            return LockNotGranted(
                f"Another open transaction holds what {doing!r} has to write, and did not end in "
                f"time ({state}: {text}). It enqueues the same idempotency key, or writes the row "
                f"of the same job. {_AGAIN} Keep such transactions short."
            )
        case "25P02":
            return TransactionRefused(
                f"This transaction has failed already ({state}), so {doing!r} cannot be done in "
                "it. Roll it back; the first error in it says why."
            )
        case "25006":
            return TransactionRefused(
                f"This transaction may only read ({state}: {text}). Begin one that may write."
            )
        case _:
            return _plain(postgres_errors.translated(state, text, doing), text)


def of_sqlite(error: BaseException, doing: str) -> TidemillError | None:
    """The error to raise in place of one of `sqlite3`; None to let it pass."""
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return sqlite_errors.translated(error, doing)
    primary = sqlite_errors.primary_code(error)
    if primary is None or not isinstance(error, sqlite3.Error):
        return None
    if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return LockNotGranted(
            f"This transaction has read, and another one wrote since, so {doing!r} can never be "
            "done in it (SQLITE_BUSY_SNAPSHOT). Roll back, and begin the next one with "
            "BEGIN IMMEDIATE, before it reads."
        )
    if primary in sqlite_errors.BUSY:
        return LockNotGranted(
            f"Another connection writes to this file, and did not end in time for {doing!r} "
            f"({error}). {_AGAIN} A transaction that has read before it writes cannot wait at "
            "all: begin it with BEGIN IMMEDIATE. Keep write transactions short."
        )
    if primary == sqlite3.SQLITE_READONLY:
        return TransactionRefused(
            f"This connection may only read ({error}). Open one that may write."
        )
    return _plain(sqlite_errors.translated(error, doing), str(error))


def _plain(told: TidemillError, text: str) -> TidemillError | None:
    if isinstance(told, SchemaError):
        return SchemaError(
            f"Tidemill's tables are missing from this transaction's database, or do not fit "
            f"({text}): run `{migrating()}`, or use a transaction on the store's own database."
        )
    return told if isinstance(told, Refused) else None
