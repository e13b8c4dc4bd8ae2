"""Operator actions: audited, and done once however often they are asked (clauses G, L1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tidemill.core.admission import admit, admit_actor
from tidemill.core.transitions import By, check, sources
from tidemill.errors import InvalidValue, JobIdConflict
from tidemill.store.memory.enqueue import key_holder, store_job
from tidemill.store.memory.rows import ActionRow, AuditRow, JobRow
from tidemill.store.memory.tables import Work
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values import causes
from tidemill.values.ids import ActionId, JobId
from tidemill.values.jobs import NewJob
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import REQUEUEABLE, JobState


class _Action(Protocol):
    @property
    def actor(self) -> str: ...
    @property
    def action(self) -> ActionId: ...


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


def _act_once(
    work: Work, operation: _Action, job_ids: tuple[JobId, ...], act: Act
) -> tuple[ActionResult, ...]:
    """Act on each job in turn, all in one transaction; the same action id again only answers."""
    kind = type(operation).__name__
    done = work.tables.actions.get(operation.action)
    if done is not None:
        return _first_answer(done, kind, operation.action)
    admit_actor(operation.actor, work.bounds)
    with work.tables.transaction():
        results = tuple(_act(work, operation, job_id, act) for job_id in job_ids)
        work.tables.save_action(operation.action, ActionRow(kind, results))
    return results


def _act(work: Work, operation: _Action, job_id: JobId, act: Act) -> ActionResult:
    row = work.tables.jobs.get(job_id)
    missing = ActionResult(job_id=job_id, effect=Effect.NOT_FOUND)
    result = missing if row is None else act(row)
    work.tables.append_audit(
        AuditRow(
            action=operation.action,
            actor=operation.actor,
            job_id=job_id,
            effect=result.effect,
            at=work.now,
        )
    )
    return result


def _first_answer(done: ActionRow, kind: str, action: ActionId) -> tuple[ActionResult, ...]:
    if done.kind != kind:
        message = (
            f"Action id {action} was used by a {done.kind} and cannot name a {kind}; nothing was "
            "written. Make a fresh id for every action."
        )
        raise InvalidValue(message)
    return done.results


def _cancel(work: Work, row: JobRow, actor: str) -> ActionResult:
    record = row.record
    if record.state is JobState.RUNNING:
        requested = replace(record, cancel_requested=record.cancel_requested or actor)
        work.tables.save_job(row.now_says(requested))
        return ActionResult(job_id=record.id, effect=Effect.REQUESTED, state=record.state)
    if record.state not in sources(JobState.CANCELLED, By.CANCEL):
        return _unchanged(row)
    cancelled = replace(
        record,
        state=check(record.state, JobState.CANCELLED, By.CANCEL),
        held=None,
        finished_at=work.now,
        cause=causes.operator(actor),
    )
    return _done(work, row.now_says(cancelled))


def _requeue(work: Work, row: JobRow) -> ActionResult:
    record = row.record
    if record.state not in REQUEUEABLE:
        return _unchanged(row)
    if holder := key_holder(work, record.tenant, record.idempotency_key):
        return ActionResult(
            job_id=record.id, effect=Effect.KEY_HELD, state=record.state, other=holder.record.id
        )
    requeued = replace(
        record,
        state=check(record.state, JobState.READY, By.REQUEUE),
        due_at=work.now,
        not_after=None,
        failures_base=record.failures,
        lapses_base=record.lapses,
        finished_at=None,
        cause=None,
        cancel_requested=None,
    )
    return _done(work, row.now_says(requeued))


def _run_now(work: Work, row: JobRow) -> ActionResult:
    record = row.record
    if record.state not in sources(JobState.READY, By.RUN_NOW):
        return _unchanged(row)
    state = check(record.state, JobState.READY, By.RUN_NOW)
    return _done(work, row.now_says(replace(record, state=state, due_at=work.now)))


def _rerun(work: Work, row: JobRow, new_id: JobId) -> ActionResult:
    record = row.record
    if not record.state.terminal:
        return _unchanged(row)
    copy = _copy(row, new_id)
    admit(copy, work.bounds)
    if new_id in work.tables.jobs:
        message = f"Job id {new_id} is taken; nothing was written. Make a fresh id for a rerun."
        raise JobIdConflict(message)
    store_job(work, copy)
    return ActionResult(job_id=record.id, effect=Effect.DONE, state=record.state, other=new_id)


def _copy(row: JobRow, new_id: JobId) -> NewJob:
    record = row.record
    return NewJob(
        id=new_id,
        wire_name=record.wire_name,
        payload=row.payload,
        queue=record.queue,
        priority=record.priority,
        timeout=record.timeout,
        retry=record.retry,
        tenant=record.tenant,
        tags=row.tags,
        trace_context=record.trace_context,
        rerun_of=record.id,
    )


def _done(work: Work, row: JobRow) -> ActionResult:
    work.tables.save_job(row)
    return ActionResult(job_id=row.record.id, effect=Effect.DONE, state=row.record.state)


def _unchanged(row: JobRow) -> ActionResult:
    return ActionResult(job_id=row.record.id, effect=Effect.UNCHANGED, state=row.record.state)
