"""Held jobs: releasing what was set aside when its reason is gone (clause J3)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.store.memory.tables import Work


def unhold(work: Work, names: frozenset[str] | None, limit: int) -> int:
    """Release up to `limit` jobs that are held although somebody knows their name.

    By name and id; `names` is None where somebody knows every name. Answers how many.
    """
    held: set[str] = set(work.tables.held.groups())
    released = 0
    for wire_name in sorted(held if names is None else held & names):
        for job_id in work.tables.held.ids(wire_name)[: limit - released]:
            row = work.tables.jobs[job_id]
            work.tables.save_job(row.now_says(replace(row.record, held=None)))
            released += 1
    return released
