"""What the demonstration reads from its store: through the monitor, as any tool would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.store.monitor import CountJobs, GetJob, ListJobs, ListWorkers
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import JobDetails
from tidemill.values.monitor import WorkerRecord
from tidemill.values.states import JobState

if TYPE_CHECKING:
    from tidemill.store.contract import Store

_PAGE = 200
_LOCK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Tables:
    """The store's side of the story."""

    store: Store
    file: Path

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state; absent ones are zero."""
        found: dict[JobState, int] = {}
        for each in self.store.perform_sync(CountJobs()):
            found[each.state] = found.get(each.state, 0) + each.count
        return found

    def workers(self) -> tuple[WorkerRecord, ...]:
        """Every registered worker, oldest first."""
        return self.store.perform_sync(ListWorkers())

    def worker_of(self, pid: int) -> WorkerRecord | None:
        """The newest worker that a process registered."""
        mine = [worker for worker in self.workers() if worker.pid == pid]
        return mine[-1] if mine else None

    def worker(self, worker_id: WorkerId) -> WorkerRecord | None:
        """One worker; None when it is not registered."""
        return next((each for each in self.workers() if each.id == worker_id), None)

    def jobs(self) -> Iterator[JobDetails]:
        """Every job, whole."""
        cursor: str | None = None
        while True:
            page = self.store.perform_sync(ListJobs(cursor=cursor, limit=_PAGE))
            for record in page.jobs:
                details = self.store.perform_sync(GetJob(record.id))
                if details is not None:
                    yield details
            cursor = page.next_cursor
            if cursor is None:
                return

    def writable(self) -> bool:
        """Whether someone could write: nobody, paused or not, sits on SQLite's write lock."""
        with closing(sqlite3.connect(self.file, timeout=_LOCK_SECONDS, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            db.execute("ROLLBACK")
            return True
