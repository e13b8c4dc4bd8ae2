"""The application that the demonstration's workers run: one job that verifies one file."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemill.app import Tidemill
from tidemill.cli.demo.journal import Journal
from tidemill.context import JobContext
from tidemill.values.retry import Retry

QUEUE = "files"
JOURNAL_VARIABLE = "TIDEMILL_DEMO_JOURNAL"
PACE_VARIABLE = "TIDEMILL_DEMO_PACE"

mill = Tidemill()


@dataclass(frozen=True, slots=True)
class Checked:
    """What a body found; `digest` is the file's SHA-256 in hexadecimal."""

    matches: bool
    digest: str
    size: int


@mill.job("demo.verify", queue=QUEUE, retry=Retry.immediate())
def verify(context: JobContext, path: str, digest: str, size: int) -> Checked:
    """Hash a file and say whether its RECORD told the truth. A plain function: runs in a thread."""
    _journal().begin(context.job_id, context.attempt)
    context.sync.wait_cancelled(_pace())
    with Path(path).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        read = file.tell()
    return Checked(matches=found == digest and read == size, digest=found, size=read)


@cache
def _journal() -> Journal:
    return Journal(Path(os.environ[JOURNAL_VARIABLE]))


@cache
def _pace() -> float:
    """Seconds that each body takes longer, so that a small run lasts until its faults."""
    return float(os.environ.get(PACE_VARIABLE, "0"))
