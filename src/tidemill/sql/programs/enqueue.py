"""Enqueue: store new jobs, answer known ones (clauses A2, F1–F5)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tidemill.core.admission import admit
from tidemill.core.digest import content_digest
from tidemill.core.instants import due_instant, expiry, first_state
from tidemill.core.repeats import repeated
from tidemill.core.transitions import By, check
from tidemill.errors import StoreUnavailable
from tidemill.sql.codes import state_of
from tidemill.sql.program import Batch, Program, Statement
from tidemill.sql.programs.env import Env, chunks, read_clock, select_each
from tidemill.sql.retry import encode_retry
from tidemill.sql.rows import NO_TENANT, job_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued, NewJob
from tidemill.values.states import JobState

ROUNDS: Final = 10
"""How often the jobs are looked at again because others stored the same ids or keys meanwhile."""

_Stored = dict[JobId, tuple[JobState, bytes]]
_Key = tuple[str, str]
_Holders = dict[_Key, tuple[JobId, JobState]]


@dataclass(frozen=True, slots=True)
class Fresh:
    """A job that is new, as it is to be stored."""

    job: NewJob
    due_at: datetime
    state: JobState
    digest: bytes


def enqueue(operation: Enqueue, env: Env) -> Program[tuple[Enqueued, ...]]:
    """Store jobs that the store may hold, and answer those that are known."""
    for job in operation.jobs:
        admit(job, env.bounds)
    if not operation.jobs:
        return ()
    return (yield from store_jobs(env, operation.jobs))


def store_jobs(env: Env, jobs: Sequence[NewJob]) -> Program[tuple[Enqueued, ...]]:
    """Judge admitted jobs against what is stored and against those before them, then insert.

    Where several transactions write at once, another one may store an id or take a key between the
    look and the insert. The insert waits for its end; what it could not store is looked at again.
    """
    now = yield from read_clock(env)
    digests = [content_digest(job) for job in jobs]
    added: set[JobId] = set()
    for tried in range(ROUNDS):
        stored = yield from _stored(env, jobs, added)
        holders = yield from _holders(env, jobs, added, doubting=not tried)
        answers, fresh = _sort(jobs, digests, now, stored, holders)
        missing = [each for each in fresh if each.job.id not in added]
        if missing:
            added |= yield from _insert(env, missing, now)
        if len(added) == len(fresh):
            return answers
    message = (
        f"Other transactions kept storing the same ids or keys, {ROUNDS} times running; nothing "
        "was written. Try again."
    )
    raise StoreUnavailable(message)


def quick(operation: Enqueue, env: Env) -> Program[tuple[Enqueued, ...] | None]:
    """One plain job, due now, in one statement; None if it is not plain, or known already."""
    jobs = operation.jobs
    if len(jobs) != 1 or not _is_plain(jobs[0]):
        return None
    (job,) = jobs
    admit(job, env.bounds)
    check(None, JobState.READY, By.ENQUEUE)
    rows = yield Statement(
        "insert_one",
        {
            "id": job.id,
            "wire_name": job.wire_name,
            "queue": job.queue,
            "priority": job.priority,
            "retry": encode_retry(job.retry),
            "timeout": job.timeout,
            "tenant": job.tenant or NO_TENANT,
            "rerun_of": job.rerun_of,
            "digest": content_digest(job),
            "trace_context": job.trace_context,
            "payload": job.payload,
        },
    )
    return (Enqueued(job.id, JobState.READY),) if rows else None


def _is_plain(job: NewJob) -> bool:
    """Whether it is due now, and nothing but its own row is to be looked at or written."""
    timed = job.delay is not None or job.due_at is not None
    expiring = job.expires is not None or job.not_after is not None
    return not (timed or expiring or job.tags or job.parents or job.idempotency_key is not None)


def insert_ready(env: Env, job: NewJob, now: datetime) -> Program[bool]:
    """Insert one job, due now; answers whether its id was still free."""
    fresh = Fresh(job, now, JobState.READY, content_digest(job))
    return bool((yield from _insert(env, [fresh], now)))


def _sort(
    jobs: Sequence[NewJob],
    digests: Sequence[bytes],
    now: datetime,
    stored: _Stored,
    holders: _Holders,
) -> tuple[tuple[Enqueued, ...], list[Fresh]]:
    """The answer to each job, judged by what is stored and by those before it, and the new ones."""
    answers: list[Enqueued] = []
    fresh: list[Fresh] = []
    for job, digest in zip(jobs, digests, strict=True):
        known = _known(job, digest, stored, holders)
        if known is not None:
            answers.append(known)
            continue
        due_at = due_instant(job, now)
        state = check(None, first_state(due_at, now), By.ENQUEUE)
        fresh.append(Fresh(job, due_at, state, digest))
        stored[job.id] = (state, digest)
        if (key := key_of(job)) is not None:
            holders[key] = (job.id, state)
        answers.append(Enqueued(job.id, state))
    return tuple(answers), fresh


def key_of(job: NewJob) -> _Key | None:
    if job.idempotency_key is None:
        return None
    return (job.tenant or NO_TENANT, job.idempotency_key)


def key_holders(
    env: Env, tenant: str, keys: Sequence[str], *, doubting: bool = False
) -> Program[_Holders]:
    """The active jobs that carry these keys in a tenant's scope.

    In a transaction of the user's that shows the past, they may have ended since. With `doubting`
    they do not count there: an insert sees the present, and says whether the key is free.
    """
    found: _Holders = {}
    for chunk in chunks(keys):
        rows = yield Statement("key_holders", {"tenant": tenant, "keys": tuple(chunk)})
        for row in rows:
            if doubting and row["past"]:
                continue
            key = (tenant, row["idempotency_key"])
            found[key] = (job_id(env.dialect, row), state_of(row["state"]))
    return found


def _stored(env: Env, jobs: Sequence[NewJob], added: AbstractSet[JobId]) -> Program[_Stored]:
    """What is stored under these ids, but for what this request stored itself."""
    rows = yield from select_each("stored_jobs", [job.id for job in jobs if job.id not in added])
    return {job_id(env.dialect, row): (state_of(row["state"]), row["digest"]) for row in rows}


def _holders(
    env: Env, jobs: Sequence[NewJob], added: AbstractSet[JobId], *, doubting: bool
) -> Program[_Holders]:
    """Who holds these jobs' keys, but for what this request stored itself."""
    scopes: dict[str, set[str]] = {}
    for job in jobs:
        if (key := key_of(job)) is not None:
            scopes.setdefault(key[0], set()).add(key[1])
    found: _Holders = {}
    for tenant, keys in sorted(scopes.items()):
        found.update((yield from key_holders(env, tenant, sorted(keys), doubting=doubting)))
    return {key: holder for key, holder in found.items() if holder[0] not in added}


def _known(job: NewJob, digest: bytes, stored: _Stored, holders: _Holders) -> Enqueued | None:
    if job.id in stored:
        state, stored_digest = stored[job.id]
        return repeated(job.id, state, stored_digest, digest)
    key = key_of(job)
    if key is not None and key in holders:
        holder, state = holders[key]
        return Enqueued(holder, state, deduplicated=True)
    return None


def _insert(env: Env, fresh: Sequence[Fresh], now: datetime) -> Program[AbstractSet[JobId]]:
    """Insert in the order of keys, and answer which were inserted."""
    added: set[JobId] = set()
    for part in chunks(sorted(fresh, key=_insertion_order)):
        rows = yield Batch("insert_job", [_row(each, now) for each in part])
        if rows and rows[0]["count"] < len(part):
            added.update(JobId(env.dialect.uuid(stored)) for stored in rows[0]["added"] or ())
        else:
            added.update(each.job.id for each in part)
    tags = [
        {"job_id": each.job.id, "tag": tag.key, "value": tag.value}
        for each in fresh
        if each.job.id in added
        for tag in sorted(each.job.tags)
    ]
    if tags:
        yield Batch("insert_tag", tags)
    return added


def _insertion_order(fresh: Fresh) -> tuple[str, str, JobId]:
    """The same in every transaction, so that two of them never wait for each other (clause F2)."""
    job = fresh.job
    return (job.tenant or NO_TENANT, job.idempotency_key or "", job.id)


def _row(fresh: Fresh, now: datetime) -> dict[str, object]:
    job = fresh.job
    return {
        "id": job.id,
        "wire_name": job.wire_name,
        "queue": job.queue,
        "priority": job.priority,
        "state": fresh.state,
        "due_at": fresh.due_at,
        "retry": encode_retry(job.retry),
        "timeout": job.timeout,
        "not_after": expiry(job, now),
        "idempotency_key": job.idempotency_key,
        "tenant": job.tenant or NO_TENANT,
        "rerun_of": job.rerun_of,
        "created_at": now,
        "digest": fresh.digest,
        "trace_context": job.trace_context,
        "payload": job.payload,
    }
