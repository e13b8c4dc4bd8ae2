"""Complete and settle: a success in the handler's transaction, and what follows it (clause D8)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from tidemill.core.admission import admit
from tidemill.core.fence import Reporter, answer
from tidemill.core.instants import counted_from
from tidemill.core.transitions import By, check
from tidemill.sql.parts import tentatively
from tidemill.sql.program import Batch, Program, Row, Statement
from tidemill.sql.programs.enqueue import store_jobs
from tidemill.sql.programs.env import Env, chunks, read_clock, read_lease
from tidemill.sql.reading import Reading, id_of, shown
from tidemill.sql.rows import holder
from tidemill.sql.unsettled import Unsettled, read_mark, write_mark
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState

_log = logging.getLogger("tidemill.store")

_AFTER_THE_LAST: Final = 2
"""The line of a mark stands behind those of the handler, and behind the word on too many."""
FAILURES_AT_ONCE: Final = 20
"""Completions whose settling may fail in one sweep before the rest of it is put off."""


def complete(operation: Complete, env: Env) -> Program[Reported]:
    """Write the success under the tuple fence; what was not written is told from the row."""
    check(JobState.RUNNING, JobState.SUCCEEDED, By.SUCCESS)
    asked, attempt = operation.job_id, operation.attempt
    for child in operation.children:
        admit(child, env.bounds)
    rows = yield Statement(
        "complete_job",
        {
            "id": asked,
            "worker": operation.worker,
            "attempt": attempt,
            "output": operation.output,
            "unsettled": write_mark(Unsettled(operation.tags, operation.children)),
        },
    )
    if rows:
        return Reported(asked, attempt, Answer.APPLIED, JobState.SUCCEEDED)
    rows = yield Statement("job_holder", {"id": asked})
    seen = holder(env.dialect, rows[0]) if rows else None
    success = Outcome(job_id=asked, attempt=attempt, verdict=Verdict.SUCCEEDED)
    said = answer(Reporter(operation.worker, lease_live=False), success, seen, None)
    state = None if seen is None else seen.state
    return Reported(asked, attempt, said, state, seen if said is Answer.STALE else None)


def is_lease_live(operation: IsLeaseLive, env: Env) -> Program[bool]:
    """Read the lease, without a lock."""
    _now, live = yield from read_lease(env, operation.worker)
    return live


@dataclass(frozen=True, slots=True)
class Marked:
    """A completed row, and what is left to do for it.

    Attributes:
        stored: its id as the driver gave it, and takes it.
        attempt: which one completed it, as the driver gave it.
        name: how a log names the job.
        unread: its mark, if that cannot be read.
    """

    stored: object
    attempt: object
    name: str
    left: Unsettled
    unread: str = ""


def settle(env: Env, rows: Sequence[Row]) -> Program[int]:
    """Do what follows from completions, whose rows are locked and marked; answer how many.

    Where jobs that they left cannot be stored now, their marks stay for the sweep: nothing else in
    this transaction has to wait for them.
    """
    settled, _left = yield from _settle_together(env, _marked(env, rows))
    return settled


def settle_some(env: Env, limit: int) -> Program[int]:
    """Settle up to `limit` completions, whoever made them.

    Where not all of them can be settled together, each is tried by itself: a key that somebody else
    holds, or a job that the database refuses, keeps no other waiting.
    """
    rows = yield Statement("unsettled_jobs", {"limit": limit})
    settled, left = yield from _settle_together(env, _marked(env, rows))
    failures = 0
    for each in left:
        done = yield from tentatively(partial(_settle, env, [each]), partial(_put_off, each))
        settled += done
        failures += not done
        if failures >= FAILURES_AT_ONCE:
            break
    return settled


def store_children(env: Env, children: Sequence[NewJob]) -> Program[None]:
    """Store jobs that attempts left. Their ends are written: the keys these free are free.

    They were admitted where they were left, by bounds that may be others than those of this store.
    """
    if children:
        yield from store_jobs(env, tuple(children))


def _settle_together(env: Env, marked: Sequence[Marked]) -> Program[tuple[int, Sequence[Marked]]]:
    """Settle all of them; answers how many were, and which could not be."""
    plain = [each for each in marked if not each.left.children]
    leaving = [each for each in marked if each.left.children]
    settled = yield from _settle(env, plain)
    if leaving:
        done = yield from tentatively(partial(_settle, env, leaving), lambda _: 0)
        return settled + done, () if done else leaving
    return settled, ()


def _settle(env: Env, marked: Sequence[Marked]) -> Program[int]:
    tags = [
        {"job_id": each.stored, "tag": tag.key, "value": tag.value}
        for each in marked
        for tag in sorted(each.left.tags)
    ]
    if tags:
        yield Batch("insert_tag", tags)
    unread = [each for each in marked if each.unread]
    if unread:
        now = yield from read_clock(env)
        yield Batch("insert_line", [_unread_line(env, each, now) for each in unread])
    for ids in chunks([each.stored for each in marked]):
        yield Statement("settle_jobs", {"ids": tuple(ids)})
    yield from store_children(env, [child for each in marked for child in each.left.children])
    return len(marked)


def _put_off(marked: Marked, why: Exception) -> int:
    tell_once(marked.name, str(why))
    return 0


@lru_cache(maxsize=1_000)
def tell_once(job: str, why: str) -> None:
    """Log why a completion is not settled yet; the sweep tries again each second."""
    _log.error("The jobs that the completion of job %s left cannot be stored yet: %s", job, why)


def _marked(env: Env, rows: Sequence[Row]) -> list[Marked]:
    """The marked ones among the rows. A mark that cannot be read is told, and kept as a line."""
    found: list[Marked] = []
    for row in rows:
        mark = row["unsettled"]
        if mark is None:
            continue
        name, unread = id_of(env.dialect, row), ""
        try:
            left = _since(env, row, read_mark(mark))
        except (TypeError, ValueError):
            message = "What the completion of job %s left to do cannot be read, and is not done: %r"
            _log.error(message, name, mark)
            left, unread = Unsettled(), mark if isinstance(mark, str) else shown(mark)
        found.append(Marked(row["id"], row["attempt"], name, left, unread))
    return found


def _unread_line(env: Env, marked: Marked, now: datetime) -> dict[str, object]:
    """A line of the job's log that keeps what somebody may still want to do by hand."""
    return {
        "job_id": marked.stored,
        "attempt": marked.attempt,
        "number": env.bounds.log_lines + _AFTER_THE_LAST,
        "at": now,
        "message": "What this completion left to do cannot be read, and was not done. See fields.",
        "fields": marked.unread,
    }


def _since(env: Env, row: Row, left: Unsettled) -> Unsettled:
    """Waits of the jobs left count from the success, whenever it is settled."""
    finished_at = Reading(env.dialect, row).instant_or_none("finished_at")
    if finished_at is None or not left.children:
        return left
    children = tuple(counted_from(finished_at, child) for child in left.children)
    return replace(left, children=children)
