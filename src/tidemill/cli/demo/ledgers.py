"""The rows of the demonstration's store, read by SQL of its own.

It shares neither statements nor codes with the library whose work it checks: a row that the library
writes wrongly and reads back the same way would otherwise look right.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from tidemill.cli.demo.books import End, Entry

if TYPE_CHECKING:
    import psycopg

STATES: Final = (
    "scheduled", "ready", "awaiting", "running", "succeeded", "cancelled", "dead", "quarantined",
)  # fmt: skip
VERDICTS: Final = (
    "succeeded", "failed", "discarded", "cancelled", "unroutable", "released", "snoozed", "lapsed",
)  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCK_SECONDS: Final = 0.25
_LOOK_SECONDS: Final = 0.05


class Ledger(Protocol):
    """What the demonstration reads past the library."""

    def entries(self) -> Iterator[Entry]:
        """Every job, whole, with the ends of its attempts."""
        ...

    def calm(self) -> bool:
        """Whether nobody, stopped or not, sits on a lock that keeps the others waiting."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteLedger:
    """The tables in one SQLite file."""

    file: Path

    def entries(self) -> Iterator[Entry]:
        with closing(sqlite3.connect(self.file)) as db:
            ends = _by_job(
                (UUID(bytes=job), attempt, UUID(bytes=worker), verdict, stale, _instant(ended))
                for job, attempt, worker, verdict, stale, ended in db.execute(
                    "SELECT job_id, attempt, worker_id, verdict, stale, ended_at"
                    " FROM tidemill_attempts ORDER BY seq"
                )
            )
            rows = db.execute(
                "SELECT id, state, cause, attempt, lapses, payload, output"
                " FROM tidemill_jobs ORDER BY id"
            )
            for job, *rest in rows:
                yield _entry(UUID(bytes=job), rest, ends)

    def calm(self) -> bool:
        with closing(sqlite3.connect(self.file, timeout=_LOCK_SECONDS, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            db.execute("ROLLBACK")
            return True


@dataclass(frozen=True, slots=True)
class PostgresLedger:
    """The tables in one schema of a PostgreSQL database; `url` is as libpq takes it."""

    url: str
    schema: str

    def entries(self) -> Iterator[Entry]:
        with self._connected() as db:
            ends = _by_job(
                db.execute(
                    "SELECT job_id, attempt, worker_id, verdict, stale, ended_at"
                    " FROM attempts ORDER BY seq"
                )
            )
            rows = db.execute(
                "SELECT id, state, cause, attempt, lapses, payload, output FROM jobs ORDER BY id"
            )
            for job, *rest in rows:
                yield _entry(job, rest, ends)

    def calm(self) -> bool:
        """Ask twice who is at the tables: the same transaction in both stands still, or is long.

        Transactions that have not touched them, as those of other applications, are left out.
        """
        with self._connected() as db:
            before = self._transactions(db)
            time.sleep(_LOOK_SECONDS)
            return not (before & self._transactions(db))

    def remove(self) -> None:
        """Drop the schema with all that is in it."""
        with self._connected() as db:
            db.execute(f'DROP SCHEMA "{self.schema}" CASCADE'.encode())

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        options = f"-c search_path={self.schema}"
        return psycopg.connect(self.url, autocommit=True, connect_timeout=10, options=options)

    def _transactions(self, db: psycopg.Connection[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        rows = db.execute(
            "SELECT a.pid, a.xact_start FROM pg_stat_activity AS a"
            " JOIN pg_locks AS l ON l.pid = a.pid JOIN pg_class AS c ON c.oid = l.relation"
            " WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()"
            " AND a.xact_start IS NOT NULL AND c.relnamespace = to_regnamespace(%s)",
            (self.schema,),
        )
        return set(rows.fetchall())


def _by_job(rows: Iterable[tuple[Any, ...]]) -> dict[UUID, list[End]]:
    ends: dict[UUID, list[End]] = defaultdict(list)
    verdict: int
    for job, attempt, worker, verdict, stale, ended_at in rows:
        ends[job].append(
            End(
                attempt=attempt,
                worker=worker,
                verdict=VERDICTS[verdict],
                stale=bool(stale),
                ended_at=ended_at,
            )
        )
    return ends


def _entry(job_id: UUID, rest: list[Any], ends: dict[UUID, list[End]]) -> Entry:
    state: int
    state, cause, attempt, lapses, payload, output = rest
    return Entry(
        id=job_id,
        state=STATES[state],
        cause=cause,
        attempt=attempt,
        lapses=lapses,
        payload=payload,
        output=output,
        ends=tuple(ends.get(job_id, ())),
    )


def _instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
