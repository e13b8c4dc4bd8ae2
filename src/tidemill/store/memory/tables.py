"""The tables of the memory store: rows, indexes, and transactions that leave no trace.

Rows are frozen, and every write goes through a method that notes how to take it back. So an
exception anywhere in a transaction restores what was there before it began.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from tidemill.core.transitions import TABLE
from tidemill.errors import IllegalTransition
from tidemill.store.memory import indexes
from tidemill.store.memory.indexes import Index
from tidemill.store.memory.rows import AuditRow, JobRow, WorkerRow
from tidemill.values.bounds import Bounds
from tidemill.values.ids import ActionId, JobId, WorkerId
from tidemill.values.jobs import AttemptRecord
from tidemill.values.notes import JobLine
from tidemill.values.states import JobState

_WAITING = frozenset({JobState.READY, JobState.SCHEDULED})

K = TypeVar("K")
V = TypeVar("V")


class Tables:
    """Everything that the store knows. Read the attributes; write by the methods alone."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, JobRow] = {}
        self.workers: dict[WorkerId, WorkerRow] = {}
        self.audit: dict[ActionId, AuditRow] = {}
        self.paused: dict[str, bool] = {}
        """The queues that an operator has paused, or resumed since."""
        self.every = Index(indexes.every)
        self.ready = Index(indexes.ready)
        self.held = Index(indexes.held)
        self.scheduled = Index(indexes.scheduled)
        self.running = Index(indexes.running)
        self.expiring = Index(indexes.expiring)
        self.keyed = Index(indexes.keyed)
        self.unsettled = Index(indexes.unsettled)
        self.hinted = False
        """Whether a commit left news for those who watch since this was last set to False."""
        self._attempts: dict[JobId, tuple[AttemptRecord, ...]] = {}
        self._lines: dict[JobId, tuple[JobLine, ...]] = {}
        self._undo: list[Callable[[], object]] = []

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Keep what the block writes, or none of it if it raises."""
        hinted = self.hinted
        try:
            yield
        except BaseException:
            while self._undo:
                self._undo.pop()()
            self.hinted = hinted
            raise
        finally:
            self._undo.clear()

    def attempts(self, job_id: JobId) -> tuple[AttemptRecord, ...]:
        return self._attempts.get(job_id, ())

    def lines(self, job_id: JobId) -> tuple[JobLine, ...]:
        return self._lines.get(job_id, ())

    def save_job(self, row: JobRow) -> None:
        """Write a job's row.

        Raises:
            IllegalTransition: no edge leads from the state that is there to the new one.
        """
        before = self.jobs.get(row.record.id)
        _require_edge(before, row)
        if _is_news(before, row):
            self.hinted = True
        self._undo.append(lambda: self._swap(row, before))
        self._swap(before, row)

    def save_worker(self, row: WorkerRow) -> None:
        before = self.workers.get(row.info.id)
        self._undo.append(lambda: _restore(self.workers, row.info.id, before))
        self.workers[row.info.id] = row

    def save_attempts(self, job_id: JobId, records: tuple[AttemptRecord, ...]) -> None:
        before = self._attempts.get(job_id)
        self._undo.append(lambda: _restore(self._attempts, job_id, before))
        self._attempts[job_id] = records

    def save_lines(self, job_id: JobId, lines: tuple[JobLine, ...]) -> None:
        before = self._lines.get(job_id)
        self._undo.append(lambda: _restore(self._lines, job_id, before))
        self._lines[job_id] = lines

    def save_action(self, action: ActionId, row: AuditRow) -> None:
        self._undo.append(lambda: self.audit.pop(action))
        self.audit[action] = row

    def save_paused(self, queue: str, *, paused: bool) -> None:
        before = self.paused.get(queue)
        if not paused:
            self.hinted = True
        self._undo.append(lambda: _restore(self.paused, queue, before))
        self.paused[queue] = paused

    def _swap(self, old: JobRow | None, new: JobRow | None) -> None:
        every_index = (
            self.every,
            self.ready,
            self.held,
            self.scheduled,
            self.running,
            self.expiring,
            self.keyed,
            self.unsettled,
        )
        if old is not None:
            del self.jobs[old.record.id]
            for index in every_index:
                index.remove(old.record)
        if new is not None:
            self.jobs[new.record.id] = new
            for index in every_index:
                index.add(new.record)


@dataclass(frozen=True, slots=True)
class Work:
    """What performing one operation works with: the tables, the bounds and the store's time.

    `now` is read once, under the store's lock, so that an operation has one instant.
    """

    tables: Tables
    bounds: Bounds
    now: datetime


def _is_news(before: JobRow | None, after: JobRow) -> bool:
    """A job to run, now or later; or one that runs and is now asked to cancel."""
    record = after.record
    if record.state in _WAITING:
        return record.held is None
    asked = before.record.cancel_requested if before else None
    return record.cancel_requested is not None and asked is None


def _require_edge(before: JobRow | None, after: JobRow) -> None:
    """The last guard: the topics check with the reason for the move, this one sees every move."""
    start = before.record.state if before else None
    end = after.record.state
    if start is not end and (start, end) not in TABLE:
        message = f"There is no edge from {start} to {end}; nothing was written."
        raise IllegalTransition(message)


def _restore(table: dict[K, V], key: K, before: V | None) -> None:
    if before is None:
        del table[key]
    else:
        table[key] = before
