"""Jobs that should have ended: under dead workers, beyond their timeout, or not settled."""

from __future__ import annotations

from datetime import datetime

from tidemill.doctor.words import counted, does, lasting, listed
from tidemill.values.doctor import Finding, Result, StuckJob, StuckJobs, StuckWork


def judge_stuck(stuck: StuckWork) -> list[Finding]:
    """Findings about jobs that should have ended."""
    findings = [
        *_stuck(
            stuck.abandoned,
            stuck.now,
            Result.PROBLEM,
            "no live worker, and no sweep has found {them}",
            "A live worker gives {them} back within seconds: start one. If one is live, a "
            "transaction holds {their} rows, or the database could not be written lately.",
        ),
        *_stuck(
            stuck.overdue,
            stuck.now,
            Result.WARNING,
            "been running since {their} timeout ended",
            "A plain function cannot be interrupted: look at what it does, or restart its worker.",
        ),
        *_stuck(
            stuck.unsettled,
            stuck.now,
            Result.WARNING,
            "succeeded in a transaction of {their} handler, and what follows is not settled",
            "A live worker settles {them} within seconds: start one.",
        ),
    ]
    return findings or [Finding("running", Result.OK, "No running job is stuck.")]


def _stuck(jobs: StuckJobs, now: datetime, result: Result, what: str, advice: str) -> list[Finding]:
    if not jobs.count:
        return []
    words = {
        "them": does(jobs.count, "it", "them"),
        "their": does(jobs.count, "its", "their"),
    }
    shown = listed([_shown(job, now) for job in jobs.jobs])
    more = f" and {jobs.count - len(jobs.jobs):,} more" if jobs.count > len(jobs.jobs) else ""
    have = does(jobs.count, "has", "have")
    return [
        Finding(
            "running",
            result,
            f"{counted(jobs.count, 'job')} {have} {what.format(**words)}: {shown}{more}.",
            advice.format(**words),
        )
    ]


def _shown(job: StuckJob, now: datetime) -> str:
    since = "" if job.since is None else f", for {lasting(now - job.since)}"
    return f"{job.id} ({job.wire_name}{since})"
