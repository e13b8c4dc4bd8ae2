"""Leases: register, beat, deregister (clauses A3, C4, C5, C8)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from tidemill.core.instants import after
from tidemill.errors import WorkerIdUsed
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.env import Env, chunks, read_clock, read_lease
from tidemill.sql.programs.exchange import list_running
from tidemill.sql.rows import job_id, lease_is_live, running_pairs, worker_info, write_names
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply, Registered
from tidemill.values.workers import WorkerInfo

UNHELD_AT_ONCE = 10_000
"""The most held jobs that a registration releases; the sweep releases the rest."""

LONGEST_QUICK = timedelta(days=1)
"""A longer lease has its end reckoned by the rules, which know where the calendar ends."""


def register(operation: Register, env: Env) -> Program[Registered]:
    """Make a worker known, and release what waited for somebody who knows its name."""
    info = operation.info
    now = yield from read_clock(env)
    expires_at = after(now, operation.lease)
    rows = yield Statement("worker", {"worker": info.id})
    if rows:
        _require_repeat(env, rows[0], info, now)
        if not (yield from _renew(info.id, expires_at)):
            raise _used(info, "its lease lapsed")
    else:
        yield Statement("insert_worker", _row(info, now, expires_at))
    yield from unhold(env, info.wire_names, UNHELD_AT_ONCE)
    return Registered(info.id, now)


def beat(operation: Beat, env: Env) -> Program[BeatReply]:
    """Renew a live lease; a dead one stays dead, and is marked, whatever the clock does later."""
    worker = operation.worker
    now, live = yield from read_lease(env, worker)
    if live:
        live = yield from _renew(worker, after(now, operation.lease))
    if not live:
        yield Statement("note_lapse", {"worker": worker, "now": now})
        return BeatReply(worker, now, live=False)
    running = yield from list_running(env, worker)
    return BeatReply(worker, now, live=True, running=running)


def quick_beat(operation: Beat, env: Env) -> Program[BeatReply | None]:
    """A beat in one statement; None if the lease is not live, which is then looked at."""
    worker = operation.worker
    if operation.lease > LONGEST_QUICK:
        return None
    rows = yield Statement("beat", {"worker": worker, "lease": operation.lease})
    if not rows:
        return None
    now = env.dialect.instant(rows[0]["now"])
    running = running_pairs(env.dialect, [row for row in rows if row["id"] is not None])
    return BeatReply(worker, now, live=True, running=running)


def deregister(operation: Deregister, env: Env) -> Program[None]:
    """End a worker in order."""
    now = yield from read_clock(env)
    yield Statement("end_worker", {"worker": operation.worker, "now": now})


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


def _renew(worker: WorkerId, expires_at: datetime) -> Program[bool]:
    """Move the end of a lease that is still live as the row is written."""
    rows = yield Statement("renew_lease", {"worker": worker, "expires_at": expires_at})
    return bool(rows)


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


def _require_repeat(env: Env, there: Row, info: WorkerInfo, now: datetime) -> None:
    if there["deregistered_at"] is not None:
        why = "it was deregistered"
    elif not lease_is_live(env.dialect, there, now):
        why = "its lease lapsed"
    elif worker_info(env.dialect, there) != info:
        why = "a worker that presents itself otherwise has it"
    else:
        return
    raise _used(info, why)


def _used(info: WorkerInfo, why: str) -> WorkerIdUsed:
    message = f"Worker id {info.id} was used before: {why}. Register with a fresh id."
    return WorkerIdUsed(message)
