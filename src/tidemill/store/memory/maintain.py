"""Maintenance: lapses, expiry and held jobs, a bounded batch of each (clauses C6, F1, J3)."""

from __future__ import annotations

from tidemill.core.held import known_by
from tidemill.core.instants import has_expired
from tidemill.core.lease import LAPSED_WORKERS_AT_ONCE
from tidemill.store.lease import Maintain
from tidemill.store.memory.claim import cancel_expired
from tidemill.store.memory.commit import end_attempt
from tidemill.store.memory.complete import settle_some
from tidemill.store.memory.held import unhold
from tidemill.store.memory.lease import mark_lapsed
from tidemill.store.memory.tables import Work
from tidemill.values.ids import JobId
from tidemill.values.leases import Lapsed, Maintained
from tidemill.values.outcomes import Outcome, Verdict


def maintain(work: Work, operation: Maintain) -> Maintained:
    limit = operation.limit
    _mark_lapsed(work)
    with work.tables.transaction():
        lapsed = tuple(_lapse(work, job_id) for job_id in _abandoned(work)[:limit])
    with work.tables.transaction():
        expired = _expire(work, limit)
    with work.tables.transaction():
        unheld = unhold(work, _known(work), limit)
    with work.tables.transaction():
        settled = settle_some(work, limit)
    full = limit in {len(lapsed), expired, unheld, settled}
    return Maintained(lapsed=lapsed, expired=expired, unheld=unheld, settled=settled, more=full)


def _mark_lapsed(work: Work) -> None:
    """Note the leases that ended by expiry, a bounded number of them, by id."""
    workers = work.tables.workers
    expired = sorted(
        worker
        for worker, row in workers.items()
        if row.lapsed_at is None and not row.deregistered and not row.live(work.now)
    )
    for worker in expired[:LAPSED_WORKERS_AT_ONCE]:
        mark_lapsed(work, workers[worker])


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
        row = None if job_id is None else work.tables.jobs[job_id]
        if row is None or not has_expired(row.record.attempt, row.record.not_after, work.now):
            return expired
        cancel_expired(work, row)
    return limit


def _known(work: Work) -> frozenset[str] | None:
    workers = work.tables.workers.values()
    return known_by(row.info.wire_names for row in workers if row.live(work.now))
