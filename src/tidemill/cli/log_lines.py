"""The worker's log on stderr: a line per event, as text or as JSON."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidemill.cli.output import printable

_PLAIN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None)))
_ADDED = frozenset({"message", "asctime"})


def write_log(level: str, *, as_json: bool, process: int | None = None) -> None:
    """Send every record of at least `level` to stderr; debugging is for Tidemill's own.

    `process` is the number of this process among several that write to the same place.
    """
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(JsonLines(process) if as_json else TextLines(process))
    wanted = logging.getLevelNamesMapping()[level.upper()]
    # asyncio and drivers debug with every turn of the loop: our own lines would drown in theirs.
    logging.basicConfig(level=max(wanted, logging.INFO), handlers=[lines], force=True)
    logging.getLogger("tidemill").setLevel(wanted)


class _Lines(logging.Formatter):
    """The lines of one process; `process` is its number, if it has one."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self._process = process


class TextLines(_Lines):
    """Instant, level, [process], what happened; a traceback on the lines below."""

    def format(self, record: logging.LogRecord) -> str:
        who = "" if self._process is None else f"[{self._process}] "
        said = record.getMessage()
        if record.exc_info:
            said += "\n" + self.formatException(record.exc_info)
        at = f"{_at(record):%Y-%m-%d %H:%M:%S}Z"
        line = f"{at} {record.levelname:<7} {who}" + said.replace("\n", f"\n{who}")
        return printable(line)


class JsonLines(_Lines):
    """One JSON object per event: its fields, and those given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._process is not None:
            event["process"] = self._process
        added = vars(record).keys() - _PLAIN - _ADDED
        event.update((name, vars(record)[name]) for name in sorted(added))
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(event, enc_hook=str).decode()


def _at(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
