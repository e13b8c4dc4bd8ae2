"""Operator actions: cancel, requeue, rerun, run now (clauses G1, G2, G4, L1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.admission import admit, admit_actor
from tidemill.core.transitions import By, check
from tidemill.errors import JobIdConflict
from tidemill.sql.codes import state_of
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.audit import answer_before, record_action
from tidemill.sql.programs.enqueue import insert_ready, key_holders
from tidemill.sql.programs.env import Env, read_clock, select_each
from tidemill.sql.rows import NO_TENANT, job_id, record
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values import causes
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobRecord, NewJob
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import REQUEUEABLE, JobState
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that an action names, as its locked row says it."""

    id: JobId
    state: JobState
    tenant: str
    key: str | None
    cancel_requested: str | None


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, and when, on the store's clock."""

    env: Env
    actor: str
    now: datetime


Act = Callable[[Acting, Asked], Program[ActionResult]]
_Bulk = Cancel | Requeue | RunNow


def cancel(operation: Cancel, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _cancel_one)


def requeue(operation: Requeue, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _requeue_one)


def run_now(operation: RunNow, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _run_one_now)


def rerun(operation: Rerun, env: Env) -> Program[ActionResult]:
    now = yield from read_clock(env)
    before = yield from answer_before(operation)
    if before is not None:
        return before[0]
    admit_actor(operation.actor, env.bounds)
    result = yield from _rerun(operation, env, now)
    yield from record_action(operation, now, (result,))
    return result


def _on_each(operation: _Bulk, env: Env, act: Act) -> Program[tuple[ActionResult, ...]]:
    """Act on each job in turn, each judged by its row as the ones before it left it."""
    now = yield from read_clock(env)
    before = yield from answer_before(operation)
    if before is not None:
        return before
    admit_actor(operation.actor, env.bounds)
    acting = Acting(env, operation.actor, now)
    rows = yield from select_each("asked_jobs", sorted(set(operation.job_ids)))
    asked = {each.id: each for each in (_asked(env, row) for row in rows)}
    results: list[ActionResult] = []
    for named in operation.job_ids:
        job = asked.get(named)
        if job is None:
            results.append(ActionResult(job_id=named, effect=Effect.NOT_FOUND))
            continue
        result = yield from act(acting, job)
        if result.effect in {Effect.DONE, Effect.REQUESTED}:
            again = yield from select_each("asked_jobs", (named,))
            asked[named] = _asked(env, again[0])
        results.append(result)
    yield from record_action(operation, now, results)
    return tuple(results)


def _cancel_one(acting: Acting, job: Asked) -> Program[ActionResult]:
    if job.state.terminal:
        return _result(job, Effect.UNCHANGED)
    if job.state is JobState.RUNNING:
        if job.cancel_requested is None:
            yield Statement("request_cancel", {"id": job.id, "actor": acting.actor})
        return _result(job, Effect.REQUESTED)
    state = check(job.state, JobState.CANCELLED, By.CANCEL)
    cause = causes.operator(acting.actor)
    yield Statement("cancel_job", {"id": job.id, "cause": cause, "now": acting.now})
    return _result(job, Effect.DONE, state)


def _requeue_one(acting: Acting, job: Asked) -> Program[ActionResult]:
    if job.state not in REQUEUEABLE:
        return _result(job, Effect.UNCHANGED)
    if job.key is not None:
        holders = yield from key_holders(acting.env, job.tenant, (job.key,))
        for holder, _state in holders.values():
            return _result(job, Effect.KEY_HELD, other=holder)
    state = check(job.state, JobState.READY, By.REQUEUE)
    yield Statement("requeue_job", {"id": job.id, "now": acting.now})
    return _result(job, Effect.DONE, state)


def _run_one_now(acting: Acting, job: Asked) -> Program[ActionResult]:
    if job.state is not JobState.SCHEDULED:
        return _result(job, Effect.UNCHANGED)
    state = check(job.state, JobState.READY, By.RUN_NOW)
    yield Statement("run_job_now", {"id": job.id, "now": acting.now})
    return _result(job, Effect.DONE, state)


def _rerun(operation: Rerun, env: Env, now: datetime) -> Program[ActionResult]:
    rows = yield Statement("job", {"id": operation.job_id})
    if not rows:
        return ActionResult(job_id=operation.job_id, effect=Effect.NOT_FOUND)
    original = record(env.dialect, rows[0])
    if not original.state.terminal:
        return ActionResult(job_id=original.id, effect=Effect.UNCHANGED, state=original.state)
    tags = yield Statement("job_tags", {"id": original.id})
    copy = _copy(original, operation.new_id, rows[0]["payload"], tags)
    admit(copy, env.bounds)
    taken = yield Statement("stored_jobs", {"ids": (operation.new_id,)})
    if taken or not (yield from insert_ready(env, copy, now)):
        message = (
            f"Job id {operation.new_id} is taken; nothing was written. "
            "Give the rerun an id of its own."
        )
        raise JobIdConflict(message)
    return ActionResult(job_id=original.id, effect=Effect.DONE, state=original.state, other=copy.id)


def _copy(original: JobRecord, new_id: JobId, payload: bytes, tags: Sequence[Row]) -> NewJob:
    """The content of a job as a new request: its key and its expiry spoke of the first one."""
    return NewJob(
        id=new_id,
        wire_name=original.wire_name,
        payload=payload,
        queue=original.queue,
        priority=original.priority,
        timeout=original.timeout,
        retry=original.retry,
        tenant=original.tenant,
        tags=frozenset(Tag(row["tag"], row["value"]) for row in tags),
        trace_context=original.trace_context,
        rerun_of=original.id,
    )


def _asked(env: Env, row: Row) -> Asked:
    return Asked(
        job_id(env.dialect, row),
        state_of(row["state"]),
        row["tenant"] or NO_TENANT,
        row["idempotency_key"],
        row["cancel_requested"],
    )


def _result(
    job: Asked, effect: Effect, state: JobState | None = None, other: JobId | None = None
) -> ActionResult:
    return ActionResult(job_id=job.id, effect=effect, state=state or job.state, other=other)
