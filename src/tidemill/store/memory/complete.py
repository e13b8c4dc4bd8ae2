"""Transactional completion: performed alone here, since no other transaction can hold it (D8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidemill.core.admission import admit
from tidemill.core.fence import Reporter, answer
from tidemill.core.instants import counted_from
from tidemill.core.transitions import By, check
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.memory.enqueue import store_job
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState


def complete(work: Work, operation: Complete) -> Reported:
    asked, attempt = operation.job_id, operation.attempt
    for child in operation.children:
        admit(child, work.bounds)
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
    done = replace(
        row,
        record=record,
        output=operation.output,
        settling=operation.tags,
        children=operation.children,
    )
    with work.tables.transaction():
        work.tables.save_job(done)
    return Reported(asked, attempt, said, JobState.SUCCEEDED)


def is_lease_live(work: Work, operation: IsLeaseLive) -> bool:
    worker = work.tables.workers.get(operation.worker)
    return worker is not None and worker.live(work.now)


def settle(work: Work, job_ids: Iterable[JobId]) -> None:
    """Do what follows from completions, where it is not done yet."""
    children: list[NewJob] = []
    for job_id in sorted(set(job_ids)):
        row = work.tables.jobs.get(job_id)
        if row is None or not row.record.unsettled:
            continue
        settled = replace(
            row,
            record=replace(row.record, unsettled=False),
            tags=row.tags | row.settling,
            settling=frozenset(),
            children=(),
        )
        work.tables.save_job(settled)
        children += (_since(row, child) for child in row.children)
    for child in children:
        store_job(work, child)


def _since(row: JobRow, child: NewJob) -> NewJob:
    """Waits of the jobs left count from the success, whenever it is settled."""
    finished_at = row.record.finished_at
    return child if finished_at is None else counted_from(finished_at, child)


def settle_some(work: Work, limit: int) -> int:
    """Settle up to `limit` completions, whoever made them."""
    waiting = work.tables.unsettled.ids()[:limit]
    settle(work, waiting)
    return len(waiting)
