"""Leases: register, beat, deregister (clauses A3, C4, C5, C8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tidemill.core.held import UNHELD_AT_ONCE
from tidemill.core.instants import after
from tidemill.core.lease import require_repeat
from tidemill.sql.program import Program, Statement
from tidemill.sql.programs.env import Env, chunks, read_clock, read_lease
from tidemill.sql.programs.exchange import list_running
from tidemill.sql.rows import running_pairs
from tidemill.sql.worker_rows import lease_of, worker_info, write_names, write_wire_names
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply, Registered
from tidemill.values.workers import WorkerInfo

LONGEST_QUICK = timedelta(days=1)
"""A longer lease has its end reckoned by the rules, which know where the calendar ends."""


def register(operation: Register, env: Env) -> Program[Registered]:
    """Make a worker known, and release what waited for somebody who knows its name."""
    info = operation.info
    now = yield from read_clock(env)
    rows = yield Statement("worker", {"worker": info.id})
    if rows:
        there, lease = worker_info(env.dialect, rows[0]), lease_of(env.dialect, rows[0])
        require_repeat(info, there, lease, now)
        if not (yield from _renew(info.id, operation.lease, now)):
            require_repeat(info, there, replace(lease, lapsed=True), now)
    else:
        yield Statement("insert_worker", _row(info, operation.lease, now))
    yield from unhold(info.wire_names, UNHELD_AT_ONCE)
    return Registered(info.id, now)


def beat(operation: Beat, env: Env) -> Program[BeatReply]:
    """Renew a live lease; a dead one stays dead, and is marked, whatever the clock does later."""
    worker = operation.worker
    now, live = yield from read_lease(env, worker)
    if live:
        live = yield from _renew(worker, operation.lease, now)
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


def unhold(names: frozenset[str] | None, limit: int) -> Program[int]:
    """Release up to `limit` jobs that are held although somebody knows their name.

    `names` is None where somebody knows every name.
    """
    if names is None:
        rows = yield Statement("every_held_job", {"limit": limit})
        for ids in chunks([row["id"] for row in rows]):
            yield Statement("unhold_jobs", {"ids": tuple(ids)})
        return len(rows)
    released = 0
    for chunk in chunks(sorted(names)):
        wanted = {"names": tuple(chunk), "limit": limit - released}
        rows = yield Statement("held_jobs", wanted)
        for ids in chunks([row["id"] for row in rows]):
            yield Statement("unhold_jobs", {"ids": tuple(ids)})
        released += len(rows)
        if released >= limit:
            break
    return released


def _renew(worker: WorkerId, lease: timedelta, now: datetime) -> Program[bool]:
    """Move the end of a lease that is still live as the row is written."""
    named = {"worker": worker, "lease": lease, "expires_at": after(now, lease)}
    rows = yield Statement("renew_lease", named)
    return bool(rows)


def _row(info: WorkerInfo, lease: timedelta, now: datetime) -> dict[str, object]:
    return {
        "id": info.id,
        "host": info.host,
        "pid": info.pid,
        "version": info.version,
        "queues": write_names(info.queues),
        "wire_names": write_wire_names(info.wire_names),
        "slots": info.slots,
        "now": now,
        "lease": lease,
        "expires_at": after(now, lease),
    }
