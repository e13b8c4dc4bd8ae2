"""Claim: due jobs become ready, and ready jobs are handed out (clauses C1–C4, E4, J3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from tidemill.core.poison import is_poison
from tidemill.core.transitions import By, check
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values import causes
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed, JobRecord
from tidemill.values.states import Held, JobState

MOST_SET_ASIDE = 1_000
"""Jobs that one claim may pass over. A claim that meets more comes back short."""


def activate(work: Work, request: ClaimRequest) -> None:
    """Make the due jobs of the asked queues ready."""
    for queue in _queues(request):
        while (job_id := work.tables.scheduled.first(queue)) is not None:
            row = work.tables.jobs[job_id]
            record = row.record
            if record.due_at > work.now:
                break
            state = check(record.state, JobState.READY, By.DUE)
            work.tables.save_job(row.now_says(replace(record, state=state)))


def claim(work: Work, worker: WorkerId, request: ClaimRequest) -> tuple[Claimed, ...]:
    """Fill the shares, then what room is left, going over the queues in the same order."""
    taking = _Taking(work, worker, request)
    claimed: list[Claimed] = []
    for share in request.shares:
        room = min(share.limit, request.limit - len(claimed))
        claimed += taking.take(share.queue, room)
    for queue in _queues(request):
        claimed += taking.take(queue, request.limit - len(claimed))
    return tuple(claimed)


def next_due(work: Work, request: ClaimRequest) -> timedelta | None:
    """How long until the next scheduled job of the asked queues is due."""
    firsts = (work.tables.scheduled.first(queue) for queue in _queues(request))
    due = [work.tables.jobs[job_id].record.due_at for job_id in firsts if job_id is not None]
    return max(min(due) - work.now, timedelta(0)) if due else None


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
        known = self.request.wire_names
        if row.expired(self.work.now):
            cancel_expired(self.work, row)
        elif is_poison(record.retry, record.lapses - record.lapses_base):
            self._bury(row)
        elif known is not None and record.wire_name not in known:
            held = replace(record, held=Held.UNKNOWN_WIRE_NAME)
            self.work.tables.save_job(row.now_says(held))
        else:
            return False
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


def _queues(request: ClaimRequest) -> tuple[str, ...]:
    return tuple(dict.fromkeys(share.queue for share in request.shares))
