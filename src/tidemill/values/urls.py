"""URLs of stores, as they may be shown."""

from __future__ import annotations

import shlex
from typing import Final
from urllib.parse import urlsplit

APP_PLACE: Final = "MODULE:ATTRIBUTE"
"""Stands in advice for the name of the application, where nobody knows it."""
ANY_APP: Final = f"--app {APP_PLACE}"
"""How a command is told its application, where nobody knows which one it is."""
_NOT_SHOWN: Final = "(not shown: it cannot be read as a URL)"


def without_secrets(url: str) -> str:
    """A URL without its password, and without its query, which may hold one too.

    What cannot be read as a URL may hold a password anywhere, and is not shown at all.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return _NOT_SHOWN
    if not parts.scheme or "://" not in url:
        return _NOT_SHOWN
    host = parts.hostname or ""
    place = f"[{host}]" if ":" in host else host
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{place}{f':{port}' if port else ''}{parts.path}"


def migrating(url: str | None = None, query: str = "") -> str:
    """The whole command that makes the tables of a store.

    It names the URL and the `query` of ours, unless the URL is not known or says more than may be
    shown.
    """
    if url is None or without_secrets(url) != url:
        return f"tidemill migrate {ANY_APP}"
    return f"tidemill migrate --store {shlex.quote(url + query)}"
