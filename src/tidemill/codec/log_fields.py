"""The fields of a log line as one JSON object: whatever they are, writing them never fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import msgspec

from tidemill.codec.json_text import write


def write_fields(fields: Mapping[str, object]) -> str:
    """The text of the fields; empty when there are none.

    A value that JSON cannot say is written as Python shows it.
    """
    if not fields:
        return ""
    said = (f"{_text(_named(name))}:{_said(value)}" for name, value in fields.items())
    return f"{{{','.join(said)}}}"


def _named(name: str) -> str:
    """The name, with lone surrogates escaped: read back, they would be no text to print."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(message: object) -> str:
    """A message as text, whatever it is."""
    return _text_by(str, message)


def shown(value: object) -> str:
    """How Python shows a value, whatever that does."""
    return _text_by(repr, value)


def _text_by(say: Callable[[object], str], value: object) -> str:
    try:
        return "".join([say(value)])  # which is text, and not of a subclass
    except Exception:  # noqa: BLE001 - a user's object may do anything when it is shown
        return f"<{_kind_of(value)} that cannot be shown>"


def _kind_of(value: object) -> str:
    try:
        return f"{type(value).__qualname__}"
    except Exception:  # noqa: BLE001 - so may its class
        return "object"


def _said(value: object) -> str:
    try:
        written = write(value, "a field")
        msgspec.json.decode(written)  # a `msgspec.Raw` holds what is no JSON just as well
        return written.decode()
    except Exception:  # noqa: BLE001 - so may whatever writes it down
        return _text(shown(value))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
