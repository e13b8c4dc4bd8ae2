"""Settings: constructor arguments, then the environment, then defaults."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from tidemill.errors import ConfigurationError, StoreNotConfigured
from tidemill.store.contract import Clock, Store
from tidemill.values.bounds import Bounds

STORE_VARIABLE = "TIDEMILL_STORE"
SCHEMES = ("memory", "sqlite", "postgresql")


def store_url(given: str | None) -> str:
    """The URL of the store: the given one, else what the environment says.

    Raises:
        StoreNotConfigured: neither says anything.
    """
    url = given or os.environ.get(STORE_VARIABLE)
    if not url:
        message = (
            "The app has no store yet. Give it one: Tidemill(url), mill.configure(url), or the "
            f"environment variable {STORE_VARIABLE}. {_supported()}"
        )
        raise StoreNotConfigured(message)
    return url


def open_store(url: str, bounds: Bounds, clock: Clock) -> Store:
    """The store that a URL names. Nothing is connected until its first operation.

    `clock` is for stores that have none of their own.

    Raises:
        ConfigurationError: the URL's scheme is not supported, or the URL says nothing usable.
    """
    # Only the store that is asked for is loaded.
    scheme = require_scheme(url)
    if scheme == "memory":
        from tidemill.store.memory import MemoryStore  # noqa: PLC0415 - as said above

        return MemoryStore(clock, bounds=bounds)
    if scheme == "postgresql":
        return _postgres(url, bounds)
    from tidemill.adapters.sqlite import SqliteStore  # noqa: PLC0415 - as said above

    return SqliteStore.from_url(url, bounds=bounds)


def require_scheme(url: str) -> str:
    """The scheme of a store's URL.

    Raises:
        ConfigurationError: it is not supported. The message shows the scheme only, since the rest
            may hold a password.
    """
    scheme = urlsplit(url).scheme
    if scheme not in SCHEMES or not url.startswith(f"{scheme}://"):
        shown = f"{scheme}://" if scheme else "a URL without a scheme"
        message = f"No store is known for {shown}. {_supported()}"
        raise ConfigurationError(message)
    return scheme


def _postgres(url: str, bounds: Bounds) -> Store:
    try:
        from tidemill.adapters.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        message = (
            f"A PostgreSQL store needs {error.name}, which is not installed: "
            'pip install "tidemill[postgres]".'
        )
        raise ConfigurationError(message) from error
    return PostgresStore.from_url(url, bounds=bounds)


def _supported() -> str:
    return (
        "Supported are sqlite:///path/to/file.db, postgresql://user@host/database, and memory:// "
        "for tests."
    )
