"""A job's progress as JSON text."""

from __future__ import annotations

import msgspec

from tidemill.values.ids import Attempt
from tidemill.values.notes import JobProgress, Progress

_decoder = msgspec.json.Decoder(JobProgress)


def write_progress(attempt: Attempt, word: Progress) -> str:
    """What this attempt says, which has been made storable."""
    return msgspec.json.encode(JobProgress.of(attempt, word)).decode()


def read_progress(stored: str) -> JobProgress:
    """What a stored text says.

    Raises:
        ValueError, TypeError: it does not read.
    """
    return _decoder.decode(stored)
