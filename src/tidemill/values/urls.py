"""URLs of stores, as they may be shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

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
