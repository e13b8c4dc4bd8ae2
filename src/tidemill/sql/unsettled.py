"""The mark on a completed row: what follows from it and is not done yet, as JSON text (D8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from tidemill.errors import TidemillError
from tidemill.values.jobs import NewJob
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The tags and the jobs that an attempt left."""

    tags: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()


_TAGS: Final = msgspec.json.Decoder(frozenset[Tag])
_ALL: Final = msgspec.json.Decoder(Unsettled)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def write_mark(left: Unsettled) -> str:
    """The mark: an array of tags, or an object where there are jobs too."""
    return _ENCODER.encode(left if left.children else left.tags).decode()


def read_mark(stored: str) -> Unsettled:
    """What a mark says.

    Raises:
        ValueError, TypeError: it does not read.
    """
    try:
        if stored.startswith("["):
            return Unsettled(_TAGS.decode(stored))
        return _ALL.decode(stored)
    except (msgspec.MsgspecError, TidemillError, AttributeError, RecursionError) as error:
        message = f"what follows from the completion cannot be read: {error}"
        raise ValueError(message) from error
