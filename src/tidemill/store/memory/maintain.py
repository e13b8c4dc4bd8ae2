"""Maintenance: lapses, expiry and held jobs, a bounded batch of each (clauses C6, F1, J3)."""

from __future__ import annotations

from tidemill.store.lease import Maintain
from tidemill.store.memory.claim import cancel_expired
from tidemill.store.memory.commit import end_attempt
from tidemill.store.memory.held import unhold
from tidemill.store.memory.lease import mark_lapsed
from tidemill.store.memory.tables import Work
from tidemill.values.ids import JobId
from tidemill.values.leases import Lapsed, Maintained
from tidemill.values.outcomes import Outcome, Verdict


def maintain(work: Work, operation: Maintain) -> Maintained:
    limit = operation.limit
    for worker in tuple(work.tables.workers.values()):
        if not worker.live(work.now):
            mark_lapsed(work, worker)
    with work.tables.transaction():
        lapsed = tuple(_lapse(work, job_id) for job_id in _abandoned(work)[:limit])
    with work.tables.transaction():
        expired = _expire(work, limit)
    with work.tables.transaction():
        unheld = _unhold(work, limit)
    full = limit in {len(lapsed), expired, unheld}
    return Maintained(lapsed=lapsed, expired=expired, unheld=unheld, more=full)


def _abandoned(work: Work) -> list[JobId]:
    """Running jobs whose worker is not live or not there, by id.

    It asks of every running row, not of every lapsed worker: a claim that passed its lease check
    and was committed after an earlier sweep is found as well.
    """
    workers = work.tables.workers
    running = work.tables.running
    return sorted(
        job_id
        for worker in running.groups()
        if not (worker in workers and workers[worker].live(work.now))
        for job_id in running.ids(worker)
    )


def _lapse(work: Work, job_id: JobId) -> Lapsed:
    row = work.tables.jobs[job_id]
    attempt, worker = row.record.attempt, row.record.worker
    assert worker is not None
    outcome = Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.LAPSED)
    ended = end_attempt(work, row, worker, outcome).record
    return Lapsed(
        job_id=job_id, attempt=attempt, worker=worker, state=ended.state, cause=ended.cause
    )


def _expire(work: Work, limit: int) -> int:
    for expired in range(limit):
        job_id = work.tables.expiring.first()
        if job_id is None or not work.tables.jobs[job_id].expired(work.now):
            return expired
        cancel_expired(work, work.tables.jobs[job_id])
    return limit


def _unhold(work: Work, limit: int) -> int:
    known = {
        wire_name
        for worker in work.tables.workers.values()
        if worker.live(work.now)
        for wire_name in worker.info.wire_names
    }
    unheld = 0
    for wire_name in sorted(known.intersection(work.tables.held.groups())):
        unheld += unhold(work, wire_name, limit - unheld)
    return unheld
