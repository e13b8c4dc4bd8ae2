"""Notes: what running attempts say of themselves, and how it is read (clauses D1, D2)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.store.contract import Operation
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.notes import LogPage, Note
from tidemill.values.outcomes import Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeNotes(Operation[tuple[Reported, ...]]):
    """Write down the progress and the log lines of running attempts, each judged by the fence.

    One answer per note, in order: `applied`; `stale`, when the job is not, or no more, running
    under this worker and attempt, or the lease is over; `busy`, when another transaction has the
    row locked; `gone`. What is not applied changes nothing and leaves no record: that is for the
    report of the attempt's end. A line that is there already, by its attempt and number, stays as
    it is, so that the same note can be sent twice. Text is cut with a note where it is too long.
    """

    worker: WorkerId
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class ReadLog(Operation[LogPage]):
    """One page of a job's log, oldest line first, stable while lines are added.

    The lines of the job's last attempts are kept, as many as `Bounds.attempts_kept` says. With
    `attempt` those of one are read. `limit` is clamped to the store's page size. A job that is not
    there has no lines, nor has an attempt.

    Raises:
        InvalidValue: the cursor was not made by this store.
    """

    job_id: JobId
    attempt: Attempt | None = None
    cursor: str | None = None
    limit: int = 100
