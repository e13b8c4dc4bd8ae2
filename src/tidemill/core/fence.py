"""The fence: which report may write (clauses D1 and D5). Every store asks here.

A commit applies iff the job is running, its worker is the reporter, its attempt is the reported
one, and the reporter's lease is live. Everything else is decided from the locked row and the
record of the attempt: a report that had been applied before is told so, and only what never was
and never can be is stale.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.values.ids import Attempt, WorkerId
from tidemill.values.jobs import Holder
from tidemill.values.notes import Note
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports, and whether its lease is live at this moment on the store's clock."""

    worker: WorkerId
    lease_live: bool


def admits(reporter: Reporter, attempt: Attempt, holder: Holder) -> bool:
    """Whether what this attempt says may be written."""
    return (
        holder.state is JobState.RUNNING
        and holder.worker == reporter.worker
        and holder.attempt == attempt
        and reporter.lease_live
    )


def judge_note(reporter: Reporter, note: Note, holder: Holder | None) -> Reported:
    """The answer to a note; `holder` as the locked row says, None without a row."""
    job_id, attempt = note.job_id, note.attempt
    if holder is None:
        return Reported(job_id, attempt, Answer.GONE)
    if admits(reporter, attempt, holder):
        return Reported(job_id, attempt, Answer.APPLIED, holder.state)
    return Reported(job_id, attempt, Answer.STALE, holder.state, holder)


def answer(
    reporter: Reporter, outcome: Outcome, holder: Holder | None, recorded: Verdict | None
) -> Answer:
    """What to say to a report.

    Args:
        reporter: who reports.
        outcome: what it reports, made storable.
        holder: what the locked row says; None if there is no row.
        recorded: the verdict that the attempts record holds for this very job, attempt and worker
            (stale records do not count); None if there is none.
    """
    if holder is None:
        return Answer.GONE
    if admits(reporter, outcome.attempt, holder):
        return Answer.APPLIED
    if _succeeded_by(reporter, outcome, holder):
        return Answer.ALREADY_APPLIED
    if recorded is outcome.verdict:
        same = holder.attempt == outcome.attempt
        return Answer.ALREADY_APPLIED if same else Answer.SUPERSEDED
    return Answer.STALE


def _succeeded_by(reporter: Reporter, outcome: Outcome, holder: Holder) -> bool:
    says_so = outcome.verdict is Verdict.SUCCEEDED or outcome.in_transaction
    return (
        says_so
        and holder.state is JobState.SUCCEEDED
        and holder.worker == reporter.worker
        and holder.attempt == outcome.attempt
    )
