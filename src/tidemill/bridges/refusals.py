"""Transactions that cannot carry a job, and what each refusal says to do."""

from __future__ import annotations

from typing import Any

from tidemill.drivers.footing import Database, Footing
from tidemill.errors import TransactionRefused


def require_database(footing: Footing, database: Database | str, tx: object) -> None:
    """Refuse a transaction on another kind of database than the store's.

    Raises:
        TransactionRefused: it is.
    """
    if database == footing.database:
        return
    message = (
        f"{named(tx)} is a transaction on {database}, and the store is on {footing.database}; a "
        "job can only be written where the store is. Use a transaction on the store's database."
    )
    raise TransactionRefused(message)


def refuse_closed(tx: object) -> TransactionRefused:
    """The refusal of a connection that is closed or was never opened."""
    return TransactionRefused(
        f"The connection of {named(tx)} is closed; nothing was written. Use one that is open, and "
        "call this before its transaction ends."
    )


def refuse_autocommit(tx: object, instead: str) -> TransactionRefused:
    """The refusal of a connection that would commit at once; `instead` opens a transaction."""
    return TransactionRefused(
        f"{named(tx)} has no transaction open and commits each statement by itself, so a rollback "
        f"would not undo what is written of the job; nothing was written. {instead}"
    )


def require_sqlite_transaction(raw: Any, tx: object, instead: str) -> None:
    """Refuse a connection to SQLite that would commit at once.

    One that begins by itself before it writes is taken, as it is by `INSERT`.

    Args:
        raw: a connection of `sqlite3` or of aiosqlite.
        tx: what the user gave.
        instead: what to do.

    Raises:
        TransactionRefused: it would.
    """
    if raw.in_transaction:
        return
    # Python 3.12 on says it with an attribute that is True, False, or LEGACY_TRANSACTION_CONTROL.
    if raw.isolation_level is None or getattr(raw, "autocommit", None) is True:
        raise refuse_autocommit(tx, instead)


def named(tx: object) -> str:
    """What an error calls what the user gave."""
    kind = type(tx)
    return f"{kind.__module__.partition('.')[0]}'s {kind.__qualname__}"
