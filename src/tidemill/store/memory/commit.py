"""Commit: judging outcomes by the fence, and what follows from them (clauses D1–D7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidemill.core.fence import Reporter, answer
from tidemill.core.instants import after
from tidemill.core.storable import storable
from tidemill.core.verdicts import Resolution, resolve
from tidemill.store.memory.complete import settle
from tidemill.store.memory.enqueue import store_job
from tidemill.store.memory.notes import write_note
from tidemill.store.memory.rows import JobRow
from tidemill.store.memory.tables import Work
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import AttemptRecord, JobRecord
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome, as it is stored, with the answer to it."""

    outcome: Outcome
    reported: Reported


def commit(work: Work, reporter: Reporter, outcomes: Sequence[Outcome]) -> list[Judged]:
    """Judge each outcome alone, apply what the fence admits, then do what follows from that.

    Children come last: the keys that these ends free are theirs to take (clause F3).
    """
    judged = [_commit(work, reporter, outcome) for outcome in outcomes]
    for each in judged:
        if each.reported.answer is Answer.APPLIED:
            for child in each.outcome.children:
                store_job(work, child)
    settle(work, [outcome.job_id for outcome in outcomes])
    return judged


def _commit(work: Work, reporter: Reporter, reported: Outcome) -> Judged:
    outcome = storable(reported, work.bounds)
    row = work.tables.jobs.get(outcome.job_id)
    holder = row.holder if row else None
    said = answer(reporter, outcome, holder, _recorded(work, reporter.worker, outcome))
    if row is not None and said is Answer.APPLIED:
        row = end_attempt(work, row, reporter.worker, outcome)
    if said is Answer.APPLIED or (said is Answer.ALREADY_APPLIED and outcome.in_transaction):
        write_note(work, outcome)
    return Judged(
        outcome,
        Reported(
            outcome.job_id,
            outcome.attempt,
            said,
            state=row.record.state if row else None,
            holder=holder if said is Answer.STALE else None,
        ),
    )


def end_attempt(work: Work, row: JobRow, worker: WorkerId, outcome: Outcome) -> JobRow:
    """Take a running job where its attempt's end leads it, and record that end."""
    if outcome.verdict is not Verdict.SUCCEEDED:
        _keep(work, _attempt_record(work, row.record, worker, outcome))
    resolution = resolve(row.standing, outcome)
    succeeded = resolution.state is JobState.SUCCEEDED
    ended = replace(
        row,
        record=_moved(work, row.record, resolution),
        output=outcome.output if succeeded else None,
        tags=row.tags | outcome.tags,
    )
    work.tables.save_job(ended)
    return ended


def record_stale(work: Work, worker: WorkerId, judged: Iterable[Judged]) -> None:
    """Append a record of each report that was rejected, with both sides' pairs (clause D1)."""
    for each in judged:
        if each.reported.answer is not Answer.STALE:
            continue
        outcome = each.outcome
        record = AttemptRecord(
            job_id=outcome.job_id,
            attempt=outcome.attempt,
            worker=worker,
            verdict=outcome.verdict,
            error=outcome.error,
            started_at=None,
            ended_at=work.now,
            stale=True,
            holder=each.reported.holder,
        )
        _keep(work, record)


def _moved(work: Work, record: JobRecord, resolution: Resolution) -> JobRecord:
    state = resolution.state
    return replace(
        record,
        state=state,
        due_at=record.due_at if resolution.delay is None else after(work.now, resolution.delay),
        failures=record.failures + resolution.failed,
        lapses=record.lapses + resolution.lapsed,
        worker=record.worker if state is JobState.SUCCEEDED else None,
        finished_at=work.now if state.terminal else None,
        cause=resolution.cause,
        cancel_requested=None,
    )


def _recorded(work: Work, worker: WorkerId, outcome: Outcome) -> Verdict | None:
    for record in work.tables.attempts(outcome.job_id):
        same = (record.worker, record.attempt) == (worker, outcome.attempt)
        if same and not record.stale:
            return record.verdict
    return None


def _attempt_record(
    work: Work, record: JobRecord, worker: WorkerId, outcome: Outcome
) -> AttemptRecord:
    error = outcome.error
    return AttemptRecord(
        job_id=record.id,
        attempt=record.attempt,
        worker=worker,
        verdict=outcome.verdict,
        error=error,
        started_at=record.started_at,
        ended_at=work.now,
    )


def _keep(work: Work, new: AttemptRecord) -> None:
    """Append a record; of its kind (stale or not), the oldest over the bound goes."""
    records = [*work.tables.attempts(new.job_id), new]
    of_kind = [record for record in records if record.stale is new.stale]
    if len(of_kind) > work.bounds.attempts_kept:
        records.remove(of_kind[0])
    work.tables.save_attempts(new.job_id, tuple(records))
