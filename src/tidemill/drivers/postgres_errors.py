"""What an error of PostgreSQL means to a caller, whichever driver raised it.

* a deadlock, a serialization failure, a lock or a statement that took too long, a server that is
  full, starting or stopping, a connection that broke: `StoreUnavailable`; the transaction left no
  trace and may be tried again.
* a value that another transaction wrote at the same moment: the same, since the next try sees it.
* a table or a schema that is missing: `SchemaError`.
* a value that the database refuses: `InvalidValue`, a refusal; trying again cannot help.
* all else: `StoreError`, with the database's own words.

Source: PostgreSQL manual, appendix A.
"""

from __future__ import annotations

from typing import Final

from tidemill.errors import InvalidValue, SchemaError, StoreError, StoreUnavailable, TidemillError
from tidemill.values.urls import migrating

UNIQUE_VIOLATION: Final = "23505"

_BUSY: Final = {
    "40P01": "two transactions waited for each other",
    "40001": "another transaction changed the same rows",
    "55P03": "a row stayed locked for longer than the lock time-out",
    "57014": "it took longer than the statement time-out",
    "53300": "the server has too many connections",
    "25P03": "the transaction stood idle for too long",
    "25P04": "the transaction took too long",
    "0A000": "the tables changed under a prepared statement",
    UNIQUE_VIOLATION: "another transaction wrote the same at the same moment",
}
_AWAY: Final = ("08", "57P", "58")
_MISSING: Final = frozenset({"42P01", "3F000", "42703", "42883", "42704"})
_REFUSED: Final = ("22", "23", "54")
_ADVICE: Final = {
    "28": "Check the user and the password in the store's URL.",
    "3D": "Create the database, or correct the store's URL.",
    "42501": "Grant this user the schema and its tables.",
    "53": "The server is short of memory, disk or connections.",
    "26000": "A pooler mixed up prepared statements: use prepared_statements='off'.",
    "42P05": "A pooler mixed up prepared statements: use prepared_statements='off'.",
    "25006": "The server is read-only: connect to the primary.",
}


def translated(state: str | None, text: str, doing: str) -> TidemillError:
    """The error to raise for an SQLSTATE and its text, which came up while `doing`.

    Without a state the connection itself failed.
    """
    if state is None or state.startswith(_AWAY):
        return StoreUnavailable(f"The connection to PostgreSQL failed at {doing!r}: {text}")
    if (why := _BUSY.get(state)) is not None:
        return StoreUnavailable(f"PostgreSQL gave up {doing!r}: {why} ({state}). {text}")
    if state in _MISSING:
        return SchemaError(f"The schema does not fit ({text}): run `{migrating()}`.")
    if state.startswith(_REFUSED):
        return InvalidValue(f"PostgreSQL refused a value of {doing!r} ({state}): {text}")
    advice = next((said for code, said in _ADVICE.items() if state.startswith(code)), "")
    return StoreError(f"PostgreSQL failed at {doing!r} ({state}): {text}. {advice}".rstrip())
