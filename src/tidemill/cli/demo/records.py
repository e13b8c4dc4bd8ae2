"""The demonstration's input: every installed file that a wheel's RECORD gives a hash for."""

from __future__ import annotations

import base64
import csv
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HASH = "sha256="


class RecordedFile(NamedTuple):
    """A file as its RECORD describes it; `digest` is its SHA-256 in hexadecimal."""

    path: str
    digest: str
    size: int


def installed_files() -> list[RecordedFile]:
    """The recorded files of this Python environment, in the order of their paths.

    Files without a SHA-256 or a size (RECORD itself, compiled *.pyc) are left out, and so is what
    a RECORD lists but nothing is there any more. See "Recording installed projects" in the Python
    packaging specifications.
    """
    found: dict[str, RecordedFile] = {}
    for directory in sorted({_directory("purelib"), _directory("platlib")}):
        for record in sorted(directory.glob("*.dist-info/RECORD")):
            found.update((file.path, file) for file in recorded(record))
    return [found[path] for path in sorted(found)]


def recorded(record: Path) -> Iterator[RecordedFile]:
    """The files of one RECORD that have a SHA-256 and a size, and are there."""
    base = record.parent.parent
    with record.open(encoding="utf-8", newline="") as rows:
        for row in csv.reader(rows):
            match row:
                case [name, digest, size] if size and digest.startswith(_HASH):
                    path = Path(os.path.normpath(base / name))
                    if path.suffix != ".pyc" and path.is_file():
                        yield RecordedFile(str(path), _hexadecimal(digest), int(size))
                case _:
                    continue


def _directory(name: str) -> Path:
    """Where packages are; resolved, since one of the two may be a link to the other."""
    return Path(sysconfig.get_path(name)).resolve()


def _hexadecimal(recorded_hash: str) -> str:
    text = recorded_hash.removeprefix(_HASH)
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
