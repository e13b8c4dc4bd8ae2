"""Transactional completion: performed alone here, since no other transaction can hold it (D8)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.fence import Reporter, answer
from tidemill.core.transitions import By, check
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.memory.tables import Work
from tidemill.values.ids import JobId
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState


def complete(work: Work, operation: Complete) -> Reported:
    asked, attempt = operation.job_id, operation.attempt
    row = work.tables.jobs.get(asked)
    holder = row.holder if row else None
    success = Outcome(job_id=asked, attempt=attempt, verdict=Verdict.SUCCEEDED)
    said = answer(Reporter(operation.worker, lease_live=True), success, holder, None)
    if row is None or said is not Answer.APPLIED:
        state = None if holder is None else holder.state
        return Reported(asked, attempt, said, state, holder if said is Answer.STALE else None)
    check(JobState.RUNNING, JobState.SUCCEEDED, By.SUCCESS)
    record = replace(
        row.record,
        state=JobState.SUCCEEDED,
        finished_at=work.now,
        cancel_requested=None,
        unsettled=True,
    )
    done = replace(row, record=record, output=operation.output, settling=operation.tags)
    with work.tables.transaction():
        work.tables.save_job(done)
    return Reported(asked, attempt, said, JobState.SUCCEEDED)


def is_lease_live(work: Work, operation: IsLeaseLive) -> bool:
    worker = work.tables.workers.get(operation.worker)
    return worker is not None and worker.live(work.now)


def settle(work: Work, job_id: JobId) -> None:
    """Do what follows from a completion, if it is not done yet."""
    row = work.tables.jobs.get(job_id)
    if row is None or not row.record.unsettled:
        return
    settled = replace(
        row,
        record=replace(row.record, unsettled=False),
        tags=row.tags | row.settling,
        settling=frozenset(),
    )
    work.tables.save_job(settled)


def settle_some(work: Work, limit: int) -> int:
    """Settle up to `limit` completions, whoever made them."""
    waiting = work.tables.unsettled.ids()[:limit]
    for job_id in waiting:
        settle(work, job_id)
    return len(waiting)
