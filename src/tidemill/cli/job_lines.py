"""What attempts say of themselves, as text: progress in a sentence, log lines as a table."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tidemill.cli.output import instant, print_table, printable
from tidemill.doctor.words import lasting
from tidemill.values.notes import JobLine, JobProgress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_BARE = re.compile(r"[\w.:/@+-]+", re.ASCII)
"""What needs no quotes to be told from what stands beside it."""
_SUMMARY = 120
"""Characters of a line that a page about its job shows on a terminal."""
_SECOND = 1.0
_WHOLE = 100


def show_log(out: Console, lines: Iterable[JobLine]) -> None:
    """Print log lines under a heading, whole."""
    table = _table(show_header=True)
    for line in lines:
        table.add_row(instant(line.at), str(line.attempt), _said(line))
    print_table(out, table)


def show_end_of_log(out: Console, lines: Iterable[JobLine], indent: str) -> None:
    """Print log lines as a part of a page; on a terminal, long ones are cut."""
    table = _table(show_header=False)
    for line in lines:
        said = _said(line)
        if out.is_terminal and len(said) > _SUMMARY:
            said.right_crop(len(said) - _SUMMARY)
            said.append("…")
        table.add_row(indent + instant(line.at), f"attempt {line.attempt}", said)
    print_table(out, table)


def progress_text(progress: JobProgress, now: datetime | None) -> str:
    """How far an attempt has come, and when it said so; beside `now`, how long ago that is."""
    when = f"attempt {progress.attempt}, {instant(progress.at)}"
    if now is not None:
        since = now - progress.at
        ago = f"{lasting(since)} ago" if since.total_seconds() >= _SECOND else "just now"
        when = f"{when}, {ago}"
    words = " ".join(progress.message.split())
    return "  ".join(part for part in (_percent(progress.fraction), words, f"({when})") if part)


def fields_text(line: JobLine) -> str:
    """What was said beside the message: `rows=12 file="a b"`; what is no JSON as it is stored."""
    fields = line.values
    if not fields:
        return line.fields if line.fields != "{}" else ""
    try:
        return " ".join(_pairs(fields))
    except RecursionError:
        return line.fields


def _percent(fraction: float | None) -> str:
    """In whole percent; 100 only when everything is done."""
    if fraction is None:
        return ""
    percent = round(fraction * _WHOLE)
    return f"{min(percent, _WHOLE - 1) if fraction < 1 else percent} %"


def _table(*, show_header: bool) -> Table:
    from rich.table import Table

    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=show_header
    )
    table.add_column("TIME", no_wrap=True)
    table.add_column("ATTEMPT", justify="right", no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    return table


def _said(line: JobLine) -> Text:
    from rich.text import Text

    message, fields = printable(line.message), printable(fields_text(line))
    said = Text(message)
    if fields:
        said.append(("  " if message else "") + fields, style="dim")
    return said


def _pairs(fields: dict[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        bare = isinstance(value, str) and _BARE.fullmatch(value)
        yield f"{_name(name)}={value if bare else _json(value)}"


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else _json(name)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
