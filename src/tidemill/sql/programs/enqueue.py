"""Enqueue: store new jobs, answer known ones (clauses A2, F1–F5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tidemill.core.admission import admit
from tidemill.core.digest import content_digest
from tidemill.core.instants import due_instant, expiry, first_state
from tidemill.core.repeats import repeated
from tidemill.core.transitions import By, check
from tidemill.sql.codes import state_of
from tidemill.sql.program import Batch, Program, Statement
from tidemill.sql.programs.env import Env, chunks, read_clock, select_each
from tidemill.sql.retry import encode_retry
from tidemill.sql.rows import NO_TENANT, job_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued, NewJob
from tidemill.values.states import JobState

_Stored = dict[JobId, tuple[JobState, bytes]]
_Key = tuple[str, str]
_Holders = dict[_Key, tuple[JobId, JobState]]


def enqueue(operation: Enqueue, env: Env) -> Program[tuple[Enqueued, ...]]:
    """Judge every job against what is stored and against those before it, then insert."""
    jobs = operation.jobs
    for job in jobs:
        admit(job, env.bounds)
    if not jobs:
        return ()
    now = yield from read_clock(env)
    stored = yield from _stored(env, jobs)
    holders = yield from _holders(env, jobs)
    fresh: list[tuple[NewJob, datetime, JobState, bytes]] = []
    answers: list[Enqueued] = []
    for job in jobs:
        digest = content_digest(job)
        known = _known(job, digest, stored, holders)
        if known is not None:
            answers.append(known)
            continue
        due_at = due_instant(job, now)
        state = check(None, first_state(due_at, now), By.ENQUEUE)
        fresh.append((job, due_at, state, digest))
        stored[job.id] = (state, digest)
        if (key := key_of(job)) is not None:
            holders[key] = (job.id, state)
        answers.append(Enqueued(job.id, state))
    if fresh:
        yield from _insert(fresh, now)
    return tuple(answers)


def insert_ready(job: NewJob, now: datetime) -> Program[None]:
    """Insert one job, due now, whose id and key are known to be free."""
    yield from _insert([(job, now, JobState.READY, content_digest(job))], now)


def key_of(job: NewJob) -> _Key | None:
    if job.idempotency_key is None:
        return None
    return (job.tenant or NO_TENANT, job.idempotency_key)


def key_holders(env: Env, tenant: str, keys: Sequence[str]) -> Program[_Holders]:
    """The active jobs that carry these keys in a tenant's scope."""
    found: _Holders = {}
    for chunk in chunks(keys):
        rows = yield Statement("key_holders", {"tenant": tenant, "keys": tuple(chunk)})
        for row in rows:
            key = (tenant, row["idempotency_key"])
            found[key] = (job_id(env.dialect, row), state_of(row["state"]))
    return found


def _stored(env: Env, jobs: Sequence[NewJob]) -> Program[_Stored]:
    rows = yield from select_each("stored_jobs", [job.id for job in jobs])
    return {job_id(env.dialect, row): (state_of(row["state"]), row["digest"]) for row in rows}


def _holders(env: Env, jobs: Sequence[NewJob]) -> Program[_Holders]:
    scopes: dict[str, set[str]] = {}
    for job in jobs:
        if (key := key_of(job)) is not None:
            scopes.setdefault(key[0], set()).add(key[1])
    found: _Holders = {}
    for tenant, keys in sorted(scopes.items()):
        found.update((yield from key_holders(env, tenant, sorted(keys))))
    return found


def _known(job: NewJob, digest: bytes, stored: _Stored, holders: _Holders) -> Enqueued | None:
    if job.id in stored:
        state, stored_digest = stored[job.id]
        return repeated(job.id, state, stored_digest, digest)
    key = key_of(job)
    if key is not None and key in holders:
        holder, state = holders[key]
        return Enqueued(holder, state, deduplicated=True)
    return None


def _insert(
    fresh: Sequence[tuple[NewJob, datetime, JobState, bytes]], now: datetime
) -> Program[None]:
    yield Batch(
        "insert_job",
        [_row(job, due_at, state, digest, now) for job, due_at, state, digest in fresh],
    )
    tags = [
        {"job_id": job.id, "tag": tag.key, "value": tag.value}
        for job, *_ in fresh
        for tag in sorted(job.tags)
    ]
    if tags:
        yield Batch("insert_tag", tags)


def _row(
    job: NewJob, due_at: datetime, state: JobState, digest: bytes, now: datetime
) -> dict[str, object]:
    return {
        "id": job.id,
        "wire_name": job.wire_name,
        "queue": job.queue,
        "priority": job.priority,
        "state": state,
        "due_at": due_at,
        "retry": encode_retry(job.retry),
        "timeout": job.timeout,
        "not_after": expiry(job, now),
        "idempotency_key": job.idempotency_key,
        "tenant": job.tenant or NO_TENANT,
        "rerun_of": job.rerun_of,
        "created_at": now,
        "digest": digest,
        "trace_context": job.trace_context,
        "payload": job.payload,
    }
