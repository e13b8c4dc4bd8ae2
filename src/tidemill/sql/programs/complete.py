"""Complete and settle: a success in the handler's transaction, and what follows it (clause D8)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tidemill.core.fence import Reporter, answer
from tidemill.core.transitions import By, check
from tidemill.sql.program import Batch, Program, Row, Statement
from tidemill.sql.programs.env import Env, chunks, read_lease
from tidemill.sql.rows import holder, read_tags, write_tags
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

_log = logging.getLogger("tidemill.store")


def complete(operation: Complete, env: Env) -> Program[Reported]:
    """Write the success under the tuple fence; what was not written is told from the row."""
    check(JobState.RUNNING, JobState.SUCCEEDED, By.SUCCESS)
    asked, attempt = operation.job_id, operation.attempt
    rows = yield Statement(
        "complete_job",
        {
            "id": asked,
            "worker": operation.worker,
            "attempt": attempt,
            "output": operation.output,
            "unsettled": write_tags(operation.tags),
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


def settle(rows: Sequence[Row]) -> Program[int]:
    """Do what follows from completions, whose rows are locked and marked; answer how many.

    Ids are as the driver gave them, so that one that cannot be read keeps no other waiting.
    """
    marked = [row for row in rows if row["unsettled"] is not None]
    tags = [
        {"job_id": row["id"], "tag": tag.key, "value": tag.value}
        for row in marked
        for tag in sorted(_tags_of(row))
    ]
    if tags:
        yield Batch("insert_tag", tags)
    for ids in chunks([row["id"] for row in marked]):
        yield Statement("settle_jobs", {"ids": tuple(ids)})
    return len(marked)


def settle_some(limit: int) -> Program[int]:
    """Settle up to `limit` completions, whoever made them."""
    rows = yield Statement("unsettled_jobs", {"limit": limit})
    return (yield from settle(rows))


def _tags_of(row: Row) -> frozenset[Tag]:
    """The tags in a mark. One that cannot be read is settled without: tags are observational."""
    try:
        return read_tags(row["unsettled"])
    except (TypeError, ValueError):
        _log.error("The tags of job %r cannot be read: %r.", row["id"], row["unsettled"])
        return frozenset()
