"""Leases: register, beat, deregister (clauses A3, C4, C5, C8)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from tidemill.errors import InvalidValue
from tidemill.sql.program import Program, Statement
from tidemill.sql.programs.env import Env, chunks, later, read_clock, read_lease
from tidemill.sql.programs.exchange import list_running
from tidemill.sql.rows import job_id, lease_is_live, worker_info, write_names
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply, Registered
from tidemill.values.workers import WorkerInfo

UNHELD_AT_ONCE = 10_000
"""The most held jobs that a registration releases; the sweep releases the rest."""


def register(operation: Register, env: Env) -> Program[Registered]:
    """Make a worker known, and release what waited for somebody who knows its name."""
    info = operation.info
    now = yield from read_clock(env)
    rows = yield Statement("worker", {"worker": info.id})
    if rows:
        same = worker_info(env.dialect, rows[0]) == info
        if same and lease_is_live(env.dialect, rows[0], now):
            return Registered(info.id, now)
        raise _used(info.id)
    yield Statement("insert_worker", _row(info, now, later(now, operation.lease)))
    yield from unhold(env, info.wire_names, UNHELD_AT_ONCE)
    return Registered(info.id, now)


def beat(operation: Beat, env: Env) -> Program[BeatReply]:
    """Renew a live lease; a dead one stays dead."""
    worker = operation.worker
    now = yield from read_clock(env)
    live = yield from read_lease(env, worker, now)
    if live:
        expires_at = later(now, operation.lease)
        yield Statement("renew_lease", {"worker": worker, "expires_at": expires_at})
    running = yield from list_running(env, worker)
    return BeatReply(worker, now, live, running)


def deregister(operation: Deregister, _env: Env) -> Program[None]:
    """Forget a worker."""
    yield Statement("delete_worker", {"worker": operation.worker})


def unhold(env: Env, names: Collection[str], limit: int) -> Program[int]:
    """Release up to `limit` jobs that are held although somebody knows their name."""
    released = 0
    for chunk in chunks(sorted(names)):
        wanted = {"names": tuple(chunk), "limit": limit - released}
        rows = yield Statement("held_jobs", wanted)
        for ids in chunks([job_id(env.dialect, row) for row in rows]):
            yield Statement("unhold_jobs", {"ids": tuple(ids)})
        released += len(rows)
        if released >= limit:
            break
    return released


def _row(info: WorkerInfo, now: datetime, expires_at: datetime) -> dict[str, object]:
    return {
        "id": info.id,
        "host": info.host,
        "pid": info.pid,
        "version": info.version,
        "queues": write_names(info.queues),
        "wire_names": write_names(sorted(info.wire_names)),
        "slots": info.slots,
        "now": now,
        "expires_at": expires_at,
    }


def _used(worker: WorkerId) -> InvalidValue:
    return InvalidValue(
        f"Worker id {worker} was registered before; nothing was written. "
        "A worker id is fresh for every start and after every lapse."
    )
