"""Where a PostgreSQL store lives: its URL, read once, and never shown with its password."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from tidemill.errors import ConfigurationError
from tidemill.values.urls import without_secrets

Prepared = Literal["auto", "off"]
_PREPARED: Final[Mapping[str, Prepared]] = {"auto": "auto", "off": "off"}
SCHEMES: Final = ("postgresql", "postgres")
_LIBPQ_ONLY: Final = frozenset({
    "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
    "tcp_user_timeout",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """A checked URL.

    Attributes:
        libpq: for psycopg.
        asyncpg: for asyncpg, which takes libpq's socket options for settings of the server.
        shown: without password.
        options: what the URL says to us and not to the database.
    """

    libpq: str = field(repr=False)
    asyncpg: str = field(repr=False)
    shown: str
    options: dict[str, str]


def read_url(url: str, own: frozenset[str] = frozenset()) -> PostgresUrl:
    """Check a `postgresql://` URL; `own` names query options that are ours.

    Raises:
        ConfigurationError: it is none. The message does not show it, since it may hold a password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is none
    except ValueError as error:
        message = "The URL of the PostgreSQL store cannot be read: its host or port is malformed."
        raise ConfigurationError(message) from error
    if parts.scheme not in SCHEMES:
        message = (
            f"{parts.scheme or 'A URL without a scheme'} is no PostgreSQL store: write "
            "postgresql://user:password@host:5432/database."
        )
        raise ConfigurationError(message)
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in query if name in own}
    theirs = [(name, value) for name, value in query if name not in own]
    shared = [(name, value) for name, value in theirs if name not in _LIBPQ_ONLY]
    return PostgresUrl(
        libpq=_joined(parts, theirs),
        asyncpg=_joined(parts, shared),
        shown=without_secrets(url),
        options=ours,
    )


def _joined(parts: SplitResult, query: list[tuple[str, str]]) -> str:
    """The URL again. One without a host keeps its slashes, by which it is a URL."""
    asked = f"?{urlencode(query)}" if query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{asked}"


def read_prepared(value: str) -> Prepared:
    """How statements are prepared.

    Raises:
        ConfigurationError: neither auto nor off.
    """
    known = _PREPARED.get(value)
    if known is not None:
        return known
    message = f"prepared_statements={value!r} is unknown: use 'auto', or 'off' behind a pooler."
    raise ConfigurationError(message)
