"""Tags: observational labels and key=value pairs on a job (clause K1)."""

from __future__ import annotations

from typing import NamedTuple


class Tag(NamedTuple):
    """A label (`value` empty) or a key with its value. Never influences execution."""

    key: str
    value: str = ""
