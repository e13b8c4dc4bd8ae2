"""Claim: from ready rows to running attempts (clauses C1–C3, E4, F1, J3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tidemill.core.claim import (
    MOST_ACTIVATED,
    MOST_SET_ASIDE,
    Candidate,
    Fate,
    fate,
)
from tidemill.core.transitions import By, check
from tidemill.sql.dialects.dialect import instant_or_none
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.env import CHUNK, Env, chunks
from tidemill.sql.retry import decode_retry
from tidemill.sql.rows import claimed, job_id
from tidemill.values import causes
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.states import Held, JobState

_SOON = timedelta(0)


@dataclass(slots=True)
class Claim:
    """One claim under way: what was asked, and what was found so far."""

    request: ClaimRequest
    worker: WorkerId
    now: datetime
    jobs: list[Claimed] = field(default_factory=list[Claimed])
    set_aside: int = 0
    dry: set[str] = field(default_factory=set[str])

    @property
    def room(self) -> int:
        return self.request.limit - len(self.jobs)


def claim(
    env: Env, state: Claim, queues: Sequence[str], next_due: timedelta | None
) -> Program[tuple[tuple[Claimed, ...], timedelta | None]]:
    """Activate what is due, fill the shares, fill what room is left, tell the next due instant.

    `queues` are those of the request that may be claimed from.
    """
    if next_due == _SOON:
        next_due = yield from _activate(env, queues, state.now)
    for share in state.request.shares:
        if share.queue in queues:
            yield from _take(env, state, share.queue, min(share.limit, state.room))
    for queue in queues:
        if queue not in state.dry:
            yield from _take(env, state, queue, state.room)
    if state.set_aside >= MOST_SET_ASIDE and state.room:
        next_due = _SOON
    return tuple(state.jobs), next_due


def without_paused(queues: Sequence[str]) -> Program[tuple[str, ...]]:
    """The queues that may be claimed from (clause C2)."""
    if not queues:
        return ()
    rows = yield Statement("paused_queues_of", {"queues": tuple(queues)})
    paused = {row["name"] for row in rows}
    return tuple(queue for queue in queues if queue not in paused)


def find_next_due(env: Env, queues: Sequence[str], now: datetime) -> Program[timedelta | None]:
    """How long until the next scheduled job of these queues is due; zero if one is."""
    waits: list[timedelta] = []
    for queue in queues:
        rows = yield Statement("next_due", {"queue": queue})
        if (stored := rows[0]["due_at"]) is not None:
            waits.append(max(env.dialect.instant(stored) - now, _SOON))
    return min(waits, default=None)


def _activate(env: Env, queues: Sequence[str], now: datetime) -> Program[timedelta | None]:
    check(JobState.SCHEDULED, JobState.READY, By.DUE)
    waits: list[timedelta] = []
    for queue in queues:
        wait = yield from find_next_due(env, (queue,), now)
        if wait == _SOON:
            yield Statement("activate_due", {"queue": queue, "now": now, "limit": MOST_ACTIVATED})
            wait = yield from find_next_due(env, (queue,), now)
        if wait is not None:
            waits.append(wait)
    return min(waits, default=None)


def _take(env: Env, state: Claim, queue: str, limit: int) -> Program[None]:
    """Start up to `limit` jobs of a queue, setting aside what may not run."""
    wanted = limit
    while wanted > 0 and queue not in state.dry and state.set_aside < MOST_SET_ASIDE:
        asked = min(wanted, CHUNK, MOST_SET_ASIDE - state.set_aside)
        rows = yield Statement("ready_jobs", _line(state, queue, asked))
        if len(rows) < asked:
            state.dry.add(queue)
        started = yield from _sort(env, state, rows)
        wanted -= started


def _sort(env: Env, state: Claim, rows: Sequence[Row]) -> Program[int]:
    fates: dict[Fate, list[Row]] = {each: [] for each in Fate}
    started: list[Row] = []
    for row in rows:
        (started if row["started"] else fates[_fate(env, state, row)]).append(row)
    starting = fates.pop(Fate.START)
    if starting:
        ids = tuple([row["id"] for row in starting])  # as the driver gave them, and takes them
        yield Statement("start_jobs", {"ids": ids, "worker": state.worker, "now": state.now})
        started += starting
    if started:
        check(JobState.READY, JobState.RUNNING, By.CLAIM)
        started.sort(key=_place_in_line)  # a database returns what it updated in any order
        state.jobs += [claimed(env.dialect, row, state.worker, state.now) for row in started]
    for why, aside in fates.items():
        if aside:
            state.set_aside += len(aside)
            yield from _set_aside(why, [job_id(env.dialect, row) for row in aside], state.now)
    return len(started)


def _line(state: Claim, queue: str, limit: int) -> dict[str, object]:
    """What is asked of the line of a queue, and what a statement needs that starts jobs itself."""
    names = state.request.wire_names
    return {
        "queue": queue,
        "limit": limit,
        "worker": state.worker,
        "now": state.now,
        "names": None if names is None else tuple(names),
    }


def _place_in_line(row: Row) -> tuple[object, ...]:
    return (-row["priority"], row["due_at"], row["id"])


def _fate(env: Env, state: Claim, row: Row) -> Fate:
    job = Candidate(
        row["wire_name"],
        Attempt(row["attempt"]),
        row["lapses"] - row["lapses_base"],
        decode_retry(row["retry"]),
        instant_or_none(env.dialect, row["not_after"]),
    )
    return fate(job, state.request.wire_names, state.now)


def _set_aside(why: Fate, ids: Sequence[JobId], now: datetime) -> Program[None]:
    if why is Fate.EXPIRE:
        yield from expire(ids, now)
    elif why is Fate.BURY:
        check(JobState.READY, JobState.DEAD, By.INTERRUPTION_LIMIT)
        yield Statement("bury_jobs", {"ids": tuple(ids), "cause": causes.POISON, "now": now})
    else:
        yield Statement("hold_jobs", {"ids": tuple(ids), "held": Held.UNKNOWN_WIRE_NAME})


def expire(ids: Sequence[JobId], now: datetime) -> Program[None]:
    """Cancel jobs that were never started by their `not_after`."""
    for before in (JobState.SCHEDULED, JobState.READY):
        check(before, JobState.CANCELLED, By.EXPIRY)
    for chunk in chunks(ids):
        yield Statement("expire_jobs", {"ids": tuple(chunk), "cause": causes.EXPIRED, "now": now})
