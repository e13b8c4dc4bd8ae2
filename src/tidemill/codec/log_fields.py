"""The fields of a log line as one JSON object: whatever they are, writing them never fails."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tidemill.codec.json_text import write
from tidemill.errors import EncodingError


def write_fields(fields: Mapping[str, object]) -> str:
    """The text of the fields; empty when there are none.

    A value that JSON cannot say is written as Python shows it.
    """
    if not fields:
        return ""
    said = {_named(name): _said(value) for name, value in fields.items()}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _named(name: str) -> str:
    """The name, with lone surrogates escaped: read back, they would be no text to print."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(message: object) -> str:
    """A message as text, whatever it is."""
    try:
        return str(message)
    except Exception:  # noqa: BLE001 - a user's object may do anything when it is shown
        return _shown(message)


def _said(value: object) -> object:
    try:
        read: object = json.loads(write(value, "a field"))
    except (EncodingError, RecursionError):
        return _shown(value)
    return read


def _shown(value: object) -> str:
    """The value as Python shows it."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a user's object may do anything when it is shown
        return f"<{type(value).__qualname__} that cannot be shown>"
