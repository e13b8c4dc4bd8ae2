"""Held jobs: releasing what was set aside when its reason is gone (clause J3)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.store.memory.tables import Work


def unhold(work: Work, wire_name: str, most: int | None = None) -> int:
    """Release jobs of a wire name to the claim, in id order, and answer how many."""
    ids = work.tables.held.ids(wire_name)[:most]
    for job_id in ids:
        row = work.tables.jobs[job_id]
        work.tables.save_job(row.now_says(replace(row.record, held=None)))
    return len(ids)
