"""Claim: from ready rows to running attempts (clauses C1–C3, E4, F1, J3).

Ids go back as the driver gave them: a row whose id cannot be read can be set aside all the same.
"""

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
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.env import CHUNK, Env, chunks
from tidemill.sql.programs.quarantine import Broken, quarantine
from tidemill.sql.reading import Reading
from tidemill.sql.rows import claimed, wait_until
from tidemill.values import causes
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import Attempt, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import Verdict
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
        if (wait := wait_until(env.dialect, rows[0]["due_at"], now)) is not None:
            waits.append(wait)
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
    """Start what may run and set the rest aside; an unreadable row stops none of the others."""
    aside: dict[Fate, list[Row]] = {each: [] for each in Fate}
    broken: list[Broken] = []
    starting: list[object] = []
    jobs: list[Claimed] = []
    for row in rows:
        read = Reading(env.dialect, row)
        job = claimed(read, state.worker, state.now)
        why = _fate(read, row, job, state)
        if why is Fate.QUARANTINE:
            broken.append(_broken(read, row, job, state))
        elif why is not Fate.START:
            aside[why].append(row)
        else:
            jobs.append(job)
            if not row["started"]:
                starting.append(row["id"])
    if starting:
        ids = tuple(starting)
        yield Statement("start_jobs", {"ids": ids, "worker": state.worker, "now": state.now})
    if jobs:
        check(JobState.READY, JobState.RUNNING, By.CLAIM)
        state.jobs += sorted(jobs, key=_place_in_line)  # a database answers in any order
    for fate_, found in aside.items():
        if found:
            yield from _set_aside(fate_, [row["id"] for row in found], state.now)
    yield from quarantine(env, broken, state.now)
    state.set_aside += len(rows) - len(jobs)
    return len(jobs)


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


def _place_in_line(job: Claimed) -> tuple[object, ...]:
    return (-job.priority, job.due_at, job.id)


def _fate(read: Reading, row: Row, job: Claimed, state: Claim) -> Fate:
    if row["started"] and not read.faults:
        return Fate.START
    lapses = read.count("lapses") - read.count("lapses_base")
    not_after = read.instant_or_none("not_after")
    named = "wire_name" not in read.faults
    candidate = Candidate(
        job.wire_name if named else None,
        Attempt(job.attempt - 1),
        lapses,
        job.retry,
        not_after,
        readable=not read.faults,
    )
    return fate(candidate, state.request.wire_names, state.now)


def _broken(read: Reading, row: Row, job: Claimed, state: Claim) -> Broken:
    """The claim starts the attempt, which ends at once: nobody can run it."""
    columns = tuple(dict.fromkeys(read.faults))
    attempt = None if "attempt" in columns else job.attempt
    return Broken(row, columns, attempt, state.worker, Verdict.UNROUTABLE, state.now)


def _set_aside(why: Fate, ids: Sequence[object], now: datetime) -> Program[None]:
    if why is Fate.EXPIRE:
        yield from expire(ids, now)
    elif why is Fate.BURY:
        check(JobState.READY, JobState.DEAD, By.INTERRUPTION_LIMIT)
        yield Statement("bury_jobs", {"ids": tuple(ids), "cause": causes.POISON, "now": now})
    else:
        yield Statement("hold_jobs", {"ids": tuple(ids), "held": Held.UNKNOWN_WIRE_NAME})


def expire(ids: Sequence[object], now: datetime) -> Program[None]:
    """Cancel jobs that were never started by their `not_after`."""
    for before in (JobState.SCHEDULED, JobState.READY):
        check(before, JobState.CANCELLED, By.EXPIRY)
    for chunk in chunks(ids):
        yield Statement("expire_jobs", {"ids": tuple(chunk), "cause": causes.EXPIRED, "now": now})
