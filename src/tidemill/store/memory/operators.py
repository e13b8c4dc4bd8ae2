"""Operator actions: audited, and done once however often they are asked (clauses G, L1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from tidemill.core.actions import not_found, require_repeat
from tidemill.core.admission import admit, admit_actor, admit_queue
from tidemill.core.cancel import cancelling
from tidemill.core.pause import pausing
from tidemill.core.requeue import requeueing
from tidemill.core.rerun import copy_of, id_taken, rerunning
from tidemill.core.run_now import running_now
from tidemill.store.memory.enqueue import key_holder, store_job
from tidemill.store.memory.rows import AuditRow, JobRow
from tidemill.store.memory.tables import Work
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values import causes
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult, Effect, QueueResult
from tidemill.values.states import JobState

Action = Cancel | Requeue | Rerun | RunNow
Act = Callable[[JobRow], ActionResult]


def cancel(work: Work, operation: Cancel) -> tuple[ActionResult, ...]:
    def act(row: JobRow) -> ActionResult:
        return _cancel(work, row, operation.actor)

    return _act_once(work, operation, operation.job_ids, act)


def requeue(work: Work, operation: Requeue) -> tuple[ActionResult, ...]:
    return _act_once(work, operation, operation.job_ids, lambda row: _requeue(work, row))


def run_now(work: Work, operation: RunNow) -> tuple[ActionResult, ...]:
    return _act_once(work, operation, operation.job_ids, lambda row: _run_now(work, row))


def rerun(work: Work, operation: Rerun) -> ActionResult:
    def act(row: JobRow) -> ActionResult:
        return _rerun(work, row, operation.new_id)

    return _act_once(work, operation, (operation.job_id,), act)[0]


def pause_queue(work: Work, operation: PauseQueue) -> QueueResult:
    before = _first_answer(work, operation)
    if before is not None:
        return cast("QueueResult", before[0])
    admit_actor(operation.actor, work.bounds)
    admit_queue(operation.queue, work.bounds)
    queue, wanted = operation.queue, operation.paused
    result = pausing(queue, paused=work.tables.paused.get(queue, False), wanted=wanted)
    with work.tables.transaction():
        if result.effect is Effect.DONE:
            work.tables.save_paused(queue, paused=wanted)
        _audit(work, operation, (result,))
    return result


def _act_once(
    work: Work, operation: Action, job_ids: tuple[JobId, ...], act: Act
) -> tuple[ActionResult, ...]:
    """Act on each job in turn, all in one transaction; the same action id again only answers."""
    before = _first_answer(work, operation)
    if before is not None:
        return cast("tuple[ActionResult, ...]", before)
    admit_actor(operation.actor, work.bounds)
    with work.tables.transaction():
        results = tuple(_act(work, job_id, act) for job_id in job_ids)
        _audit(work, operation, results)
    return results


def _act(work: Work, job_id: JobId, act: Act) -> ActionResult:
    row = work.tables.jobs.get(job_id)
    return not_found(job_id) if row is None else act(row)


def _first_answer(
    work: Work, operation: Action | PauseQueue
) -> tuple[ActionResult, ...] | tuple[QueueResult, ...] | None:
    done = work.tables.audit.get(operation.action)
    if done is None:
        return None
    asked = (operation.kind, operation.targets)
    require_repeat(operation.action, asked, done.kind, done.results)
    return done.results


def _audit(
    work: Work,
    operation: Action | PauseQueue,
    results: tuple[ActionResult, ...] | tuple[QueueResult, ...],
) -> None:
    row = AuditRow(operation.kind, operation.actor, work.now, results)
    work.tables.save_action(operation.action, row)


def _cancel(work: Work, row: JobRow, actor: str) -> ActionResult:
    record = row.record
    result = cancelling(record.id, record.state)
    if result.effect is Effect.REQUESTED and record.cancel_requested is None:
        work.tables.save_job(row.now_says(replace(record, cancel_requested=actor)))
    elif result.effect is Effect.DONE:
        cancelled = replace(
            record,
            state=JobState.CANCELLED,
            held=None,
            finished_at=work.now,
            cause=causes.operator(actor),
        )
        work.tables.save_job(row.now_says(cancelled))
    return result


def _requeue(work: Work, row: JobRow) -> ActionResult:
    record = row.record
    holder = key_holder(work, record.tenant, record.idempotency_key)
    result = requeueing(record.id, record.state, holder.record.id if holder else None)
    if result.effect is Effect.DONE:
        requeued = replace(
            record,
            state=JobState.READY,
            due_at=work.now,
            not_after=None,
            failures_base=record.failures,
            lapses_base=record.lapses,
            finished_at=None,
            cause=None,
            cancel_requested=None,
        )
        work.tables.save_job(row.now_says(requeued))
    return result


def _run_now(work: Work, row: JobRow) -> ActionResult:
    record = row.record
    result = running_now(record.id, record.state)
    if result.effect is Effect.DONE:
        ready = replace(record, state=JobState.READY, due_at=work.now)
        work.tables.save_job(row.now_says(ready))
    return result


def _rerun(work: Work, row: JobRow, new_id: JobId) -> ActionResult:
    record = row.record
    result = rerunning(record.id, record.state, new_id)
    if result.effect is Effect.DONE:
        if new_id in work.tables.jobs:
            raise id_taken(new_id)
        copy = copy_of(record, row.payload, row.tags, new_id)
        admit(copy, work.bounds)
        store_job(work, copy)
    return result
