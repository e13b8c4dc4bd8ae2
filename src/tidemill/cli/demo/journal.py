"""The journal: one line per handler body that began, kept outside the database.

It is what the tables are held against, so it shares nothing with them: plain lines, each appended
with a single write to a file opened with O_APPEND, which no other process's line can divide.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class Body(NamedTuple):
    """A handler body that began: which process ran it, for which attempt of which job."""

    pid: int
    job_id: UUID
    attempt: int


class Journal:
    """Appends lines; safe from any thread and from any number of processes at once."""

    def __init__(self, path: Path) -> None:
        """Open the file, made if it is not there."""
        self._descriptor = os.open(path, _FLAGS, 0o644)

    def begin(self, job_id: UUID, attempt: int) -> None:
        """Write down that a body begins."""
        os.write(self._descriptor, f"{os.getpid()} {job_id} {attempt}\n".encode())

    def close(self) -> None:
        """Close the file; call it once."""
        os.close(self._descriptor)


def read_journal(path: Path) -> list[Body]:
    """Every body that began, in the order of their lines.

    Raises:
        ValueError: a line is damaged.
    """
    if not path.exists():
        return []
    return [_body(line) for line in path.read_text(encoding="ascii").splitlines()]


def _body(line: str) -> Body:
    pid, job_id, attempt = line.split(" ")
    return Body(int(pid), UUID(job_id), int(attempt))
