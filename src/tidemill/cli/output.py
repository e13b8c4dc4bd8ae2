"""What commands print: text for people, JSON for programs.

Text is coloured and fitted to the width only on a terminal; into a pipe or a file it goes plain
and unshortened. What the store holds is printed with its control characters escaped, so that an
error text cannot steer the terminal of whoever reads it.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPED_WIDTH = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def console(*, width: int | None = None) -> Console:
    """Where text goes; `width` stands in for the terminal's."""
    from rich.console import Console

    if width is None and not sys.stdout.isatty():
        width = _PIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)


def print_table(out: Console, table: Table) -> None:
    """Print a table; off a terminal, without the spaces that fill its last column."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as printed:
        out.print(table)
    for line in printed.get().splitlines():
        print(line.rstrip(), file=out.file)


def print_json(value: Any) -> None:
    """Print one JSON value, indented. Instants are ISO 8601 in UTC, ids are strings."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def instant(at: datetime | None) -> str:
    """An instant for people: UTC, to the second."""
    if at is None:
        return "-"
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def short_instant(at: datetime) -> str:
    """The same where there is little room: month, day and minute."""
    return at.astimezone(UTC).strftime("%m-%d %H:%M")


def printable(text: str) -> str:
    """The text with every control character but tab and newline, and what is no text, escaped."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_json(stored: bytes) -> bool:
    try:
        msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def raw_json(stored: bytes | None) -> msgspec.Raw | str | None:
    """A stored payload or output inside JSON: verbatim, or as text if it is no JSON."""
    if stored is None:
        return None
    return msgspec.Raw(stored) if is_json(stored) else stored.decode(errors="replace")


def pretty(stored: bytes) -> str:
    """A stored payload or output for people, its numbers exactly as they are stored."""
    if is_json(stored):
        stored = msgspec.json.format(stored, indent=2)
    return printable(stored.decode(errors="replace"))
