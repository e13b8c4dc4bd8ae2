"""Complete and settle: a success in the handler's transaction, and what follows it (clause D8)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tidemill.core.admission import admit
from tidemill.core.fence import Reporter, answer
from tidemill.core.transitions import By, check
from tidemill.sql.program import Batch, Program, Row, Statement, follow_up
from tidemill.sql.programs.enqueue import enqueue
from tidemill.sql.programs.env import Env, chunks, read_lease
from tidemill.sql.reading import id_of
from tidemill.sql.rows import holder
from tidemill.sql.unsettled import Unsettled, read_mark, write_mark
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.enqueue import Enqueue
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState

_log = logging.getLogger("tidemill.store")


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
    """A completed row, by its id as the driver gave it, and what is left to do for it."""

    stored: object
    name: str
    left: Unsettled


def settle(env: Env, rows: Sequence[Row]) -> Program[int]:
    """Do what follows from completions, whose rows are locked and marked; answer how many."""
    return (yield from _settle(env, _marked(env, rows)))


def settle_some(env: Env, limit: int) -> Program[int]:
    """Settle up to `limit` completions, whoever made them.

    One whose jobs carry keys is settled by itself: a key may have to be waited for, which is to
    keep no other waiting.
    """
    rows = yield Statement("unsettled_jobs", {"limit": limit})
    marked = _marked(env, rows)
    keyed = [each for each in marked if _is_keyed(each)]
    settled = yield from _settle(env, [each for each in marked if not _is_keyed(each)])
    for each in keyed:
        what = f"What follows from the completion of job {each.name}"
        settled += yield from follow_up(partial(_settle_one, env, each.stored), 0, what)
    return settled


def store_children(env: Env, children: Sequence[NewJob]) -> Program[None]:
    """Store the jobs that attempts left. Their ends are written: the keys these free are free."""
    if children:
        yield from enqueue(Enqueue(tuple(children)), env)


def _settle_one(env: Env, stored: object) -> Program[int]:
    rows = yield Statement("unsettled_job", {"id": stored})
    return (yield from settle(env, rows))


def _settle(env: Env, marked: Sequence[Marked]) -> Program[int]:
    tags = [
        {"job_id": each.stored, "tag": tag.key, "value": tag.value}
        for each in marked
        for tag in sorted(each.left.tags)
    ]
    if tags:
        yield Batch("insert_tag", tags)
    for ids in chunks([each.stored for each in marked]):
        yield Statement("settle_jobs", {"ids": tuple(ids)})
    yield from store_children(env, [child for each in marked for child in each.left.children])
    return len(marked)


def _is_keyed(marked: Marked) -> bool:
    return any(child.idempotency_key is not None for child in marked.left.children)


def _marked(env: Env, rows: Sequence[Row]) -> list[Marked]:
    """The marked ones among the rows. A mark that cannot be read is told, and left undone."""
    found: list[Marked] = []
    for row in rows:
        mark = row["unsettled"]
        if mark is None:
            continue
        name = id_of(env.dialect, row)
        try:
            left = read_mark(mark)
        except (TypeError, ValueError):
            message = "What the completion of job %s left to do cannot be read, and is not done: %r"
            _log.error(message, name, mark)
            left = Unsettled()
        found.append(Marked(row["id"], name, left))
    return found
