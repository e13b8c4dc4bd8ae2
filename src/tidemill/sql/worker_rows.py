"""From rows to values: what a workers row says of a worker, its lease and the names it knows.

One that cannot be read stops nobody: a lease counts as ended, and a list of names as empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import cast

from tidemill.core.lease import Lease
from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.program import Row
from tidemill.sql.reading import Reading
from tidemill.values.ids import WorkerId
from tidemill.values.monitor import WorkerRecord
from tidemill.values.workers import WorkerInfo


def lease_of(dialect: Dialect, row: Row) -> Lease:
    """A lease; one whose end cannot be read ended long ago."""
    return Lease(
        Reading(dialect, row).instant("lease_expires_at"),
        row["lapsed_at"] is not None,
        row["deregistered_at"] is not None,
    )


def lease_is_live(dialect: Dialect, row: Row, now: datetime) -> bool:
    """Whether a workers row holds a live lease; a row of nulls says that there is no worker."""
    return row["lease_expires_at"] is not None and lease_of(dialect, row).is_live(now)


def worker_info(dialect: Dialect, row: Row) -> WorkerInfo:
    return _info(Reading(dialect, row), row)


def _info(read: Reading, row: Row) -> WorkerInfo:
    return WorkerInfo(
        id=WorkerId(read.uuid("id")),
        host=read.text("host"),
        pid=read.count("pid"),
        version=read.text("version"),
        queues=read_queues(row["queues"]),
        wire_names=read_wire_names(row["wire_names"]),
        slots=read.count("slots"),
    )


def worker_record(dialect: Dialect, row: Row, now: datetime) -> WorkerRecord:
    """A worker as lists show it; what cannot be read is shown as it is stored, or as nothing."""
    read = Reading(dialect, row)
    info = _info(read, row)
    return WorkerRecord(
        id=info.id,
        host=info.host,
        pid=info.pid,
        version=info.version,
        queues=info.queues,
        wire_names=info.wire_names,
        slots=info.slots,
        started_at=read.instant("started_at"),
        lease_expires_at=read.instant("lease_expires_at"),
        lapsed_at=read.instant_or_none("lapsed_at"),
        live=lease_is_live(dialect, row, now),
        running=row["running"],
    )


def write_names(names: Iterable[str]) -> str:
    """Names as JSON text."""
    return json.dumps(list(names), separators=(",", ":"))


def read_queues(stored: str) -> tuple[str, ...]:
    """The names in a stored list; one that does not read stands for none."""
    return tuple(_names(stored) or ())


def write_wire_names(names: frozenset[str] | None) -> str:
    """The wire names that a worker knows, as JSON text; `null` is every name."""
    return "null" if names is None else write_names(sorted(names))


def read_wire_names(stored: str) -> frozenset[str] | None:
    """The names of a stored text; one that does not read stands for none (clause C6)."""
    names = _names(stored)
    return None if names is None else frozenset(names)


def _names(stored: str) -> list[str] | None:
    try:
        names: object = json.loads(stored)
    except (TypeError, ValueError, RecursionError):
        return []
    if names is None:
        return None
    listed = cast("list[object]", names) if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str)]
