"""The schema's steps, numbered, and the program that applies them (clause M2).

A step is `<dialect>/NNNN_name.sql`; its first line says the oldest version of Tidemill's schema
knowledge that still works with the schema after it. Each step is one transaction, under the write
lock or a lock of the database's own, and whoever comes second finds nothing to do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tidemill.errors import SchemaError
from tidemill.sql.program import COMMIT, Program, Statement

_FILE = re.compile(r"^(\d{4})_\w+\.sql$")
_MIN_COMPATIBLE = re.compile(r"^-- min_compatible: (\d+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")

FIRST = 1
"""The version of the first step: who lacks it has no tables at all."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its name, its text, and what it needs of those who use the schema."""

    version: int
    name: str
    min_compatible: int
    text: str

    @property
    def statements(self) -> dict[str, str]:
        """Its statements by the names they have in the catalogue."""
        parts = [part.strip() for part in _COMMENT.sub("", self.text).split(";")]
        return {f"{self.name}/{n}": part for n, part in enumerate(filter(None, parts), start=1)}


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """Every step of a dialect, in order."""
    folder = files("tidemill.sql").joinpath("migrations", dialect)
    found: list[Migration] = []
    for file in folder.iterdir():
        if (match := _FILE.match(file.name)) is None:
            continue
        text = file.read_text(encoding="utf-8")
        needs = _MIN_COMPATIBLE.search(text)
        assert needs is not None, f"{file.name} does not say its min_compatible"
        name = file.name.removesuffix(".sql")
        found.append(Migration(int(match[1]), name, int(needs[1]), text))
    return tuple(sorted(found, key=lambda step: step.version))


def migrate(dialect: str) -> Program[tuple[str, ...]]:
    """Apply every step that is missing, and answer their names."""
    applied: list[str] = []
    for step in migrations(dialect):
        yield Statement("lock_schema")
        version, _needs = yield from read_versions()
        if version >= step.version:
            continue
        for name in step.statements:
            yield Statement(name)
        yield Statement("set_meta", {"name": "version", "value": step.version})
        yield Statement("set_meta", {"name": "min_compatible", "value": step.min_compatible})
        yield COMMIT
        applied.append(step.name)
    return tuple(applied)


def missing(dialect: str) -> Program[tuple[Migration, ...]]:
    """The steps that `migrate` would apply.

    Raises:
        SchemaError: the schema is too new for this version of Tidemill.
    """
    version, needs = yield from read_versions()
    ours = migrations(dialect)[-1].version
    if needs > ours:
        message = (
            f"The schema is at version {version} and works with versions from {needs} on; this "
            f"Tidemill knows version {ours}. Upgrade Tidemill."
        )
        raise SchemaError(message)
    return tuple(step for step in migrations(dialect) if step.version > version)


def read_versions() -> Program[tuple[int, int]]:
    """The schema's version and its min_compatible; zeros where there is no schema."""
    tables = yield Statement("find_meta")
    if not tables:
        return 0, 0
    rows = yield Statement("versions")
    stored = {row["name"]: int(row["value"]) for row in rows}
    return stored.get("version", 0), stored.get("min_compatible", 0)
