"""Exchange: outcomes first, then the claim, in one transaction (clauses C4, C8, D1–D7)."""

from __future__ import annotations

from datetime import timedelta

from tidemill.core.fence import Reporter
from tidemill.store.exchange import Exchange
from tidemill.store.memory import claim as claims
from tidemill.store.memory.commit import commit, record_stale
from tidemill.store.memory.tables import Work
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.workers import RunningPair


def exchange(work: Work, operation: Exchange) -> Exchanged:
    worker = work.tables.workers.get(operation.worker)
    live = worker is not None and worker.live(work.now)
    reporter = Reporter(operation.worker, live)
    with work.tables.transaction():
        judged = commit(work, reporter, operation.outcomes)
        running = running_under(work, operation.worker) if operation.list_running else None
        cancels = _asked_to_cancel(work, operation.worker)
        claimed, next_due = _claim(work, operation) if live else ((), None)
    with work.tables.transaction():
        record_stale(work, operation.worker, judged)
    return Exchanged(
        worker=operation.worker,
        now=work.now,
        live=live,
        reported=tuple(each.reported for each in judged),
        claimed=claimed,
        next_due=next_due,
        running=running,
        cancels=cancels,
    )


def running_under(work: Work, worker: WorkerId) -> tuple[RunningPair, ...]:
    """What runs under a worker, by job id, with the actor of a cancel request."""
    records = [work.tables.jobs[job_id].record for job_id in work.tables.running.ids(worker)]
    return tuple(RunningPair(job.id, job.attempt, job.cancel_requested) for job in records)


def _asked_to_cancel(work: Work, worker: WorkerId) -> tuple[RunningPair, ...]:
    running = running_under(work, worker)
    return tuple(pair for pair in running if pair.cancel_requested is not None)


def _claim(work: Work, operation: Exchange) -> tuple[tuple[Claimed, ...], timedelta | None]:
    request = operation.claim
    if request is None:
        return (), None
    return claims.claim(work, operation.worker, request)
