"""Claim: due jobs become ready, and ready jobs are handed out (clauses C1–C4, E4, J3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from tidemill.core.claim import (
    MOST_ACTIVATED,
    MOST_SET_ASIDE,
    Candidate,
    Fate,
    fate,
    queues_of,
)
from tidemill.core.transitions import By, check
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values import causes
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed, JobRecord
from tidemill.values.states import Held, JobState

_SOON = timedelta(0)


def claim(
    work: Work, worker: WorkerId, request: ClaimRequest
) -> tuple[tuple[Claimed, ...], timedelta | None]:
    """Activate what is due, fill the shares, fill what room is left, tell the next due instant."""
    queues = tuple(each for each in queues_of(request) if not work.tables.paused.get(each))
    for queue in queues:
        _activate(work, queue)
    taking = _Taking(work, worker, request)
    claimed: list[Claimed] = []
    for share in request.shares:
        if share.queue in queues:
            room = min(share.limit, request.limit - len(claimed))
            claimed += taking.take(share.queue, room)
    for queue in queues:
        claimed += taking.take(queue, request.limit - len(claimed))
    if taking.set_aside >= MOST_SET_ASIDE and len(claimed) < request.limit:
        return tuple(claimed), _SOON
    return tuple(claimed), next_due(work, queues)


def next_due(work: Work, queues: tuple[str, ...]) -> timedelta | None:
    """How long until the next scheduled job of these queues is due."""
    firsts = (work.tables.scheduled.first(queue) for queue in queues)
    due = [work.tables.jobs[job_id].record.due_at for job_id in firsts if job_id is not None]
    return max(min(due) - work.now, _SOON) if due else None


def _activate(work: Work, queue: str) -> None:
    """Make due jobs of a queue ready, longest due first."""
    for job_id in work.tables.scheduled.ids(queue)[:MOST_ACTIVATED]:
        row = work.tables.jobs[job_id]
        record = row.record
        if record.due_at > work.now:
            return
        state = check(record.state, JobState.READY, By.DUE)
        work.tables.save_job(row.now_says(replace(record, state=state)))


def cancel_expired(work: Work, row: JobRow) -> None:
    """Cancel a job that was never started and may not be started any more."""
    record = row.record
    cancelled = replace(
        record,
        state=check(record.state, JobState.CANCELLED, By.EXPIRY),
        held=None,
        finished_at=work.now,
        cause=causes.EXPIRED,
    )
    work.tables.save_job(row.now_says(cancelled))


@dataclass(slots=True)
class _Taking:
    """One claim in progress. Each job it looks at leaves the line: taken, or set aside."""

    work: Work
    worker: WorkerId
    request: ClaimRequest
    set_aside: int = 0

    def take(self, queue: str, room: int) -> Iterator[Claimed]:
        while room > 0 and self.set_aside < MOST_SET_ASIDE:
            job_id: JobId | None = self.work.tables.ready.first(queue)
            if job_id is None:
                return
            row = self.work.tables.jobs[job_id]
            if self._sets_aside(row):
                self.set_aside += 1
            else:
                room -= 1
                yield self._start(row)

    def _sets_aside(self, row: JobRow) -> bool:
        record = row.record
        job = Candidate(
            record.wire_name,
            record.attempt,
            record.lapses - record.lapses_base,
            record.retry,
            record.not_after,
        )
        match fate(job, self.request.wire_names, self.work.now):
            case Fate.START:
                return False
            case Fate.EXPIRE:
                cancel_expired(self.work, row)
            case Fate.BURY:
                self._bury(row)
            case Fate.QUARANTINE:
                message = "nobody but this store writes its rows, so all of them can be read"
                raise AssertionError(message)
            case Fate.HOLD:
                held = replace(record, held=Held.UNKNOWN_WIRE_NAME)
                self.work.tables.save_job(row.now_says(held))
        return True

    def _bury(self, row: JobRow) -> None:
        dead = replace(
            row.record,
            state=check(row.record.state, JobState.DEAD, By.INTERRUPTION_LIMIT),
            finished_at=self.work.now,
            cause=causes.POISON,
        )
        self.work.tables.save_job(row.now_says(dead))

    def _start(self, row: JobRow) -> Claimed:
        record = row.record
        running = replace(
            record,
            state=check(record.state, JobState.RUNNING, By.CLAIM),
            attempt=Attempt(record.attempt + 1),
            worker=self.worker,
            started_at=self.work.now,
        )
        self.work.tables.save_job(row.now_says(running))
        return _claimed(running, row.payload, self.worker)


def _claimed(record: JobRecord, payload: bytes, worker: WorkerId) -> Claimed:
    assert record.started_at is not None
    return Claimed(
        id=record.id,
        attempt=record.attempt,
        worker=worker,
        wire_name=record.wire_name,
        payload=payload,
        queue=record.queue,
        priority=record.priority,
        created_at=record.created_at,
        due_at=record.due_at,
        started_at=record.started_at,
        timeout=record.timeout,
        retry=record.retry,
        tenant=record.tenant,
        trace_context=record.trace_context,
    )
