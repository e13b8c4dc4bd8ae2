"""Commit: judge reports by the fence and write what follows from them (clauses D1–D7, E2, E5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from tidemill.core.fence import Reporter, answer
from tidemill.core.instants import after
from tidemill.core.storable import storable
from tidemill.core.transitions import By, check
from tidemill.core.verdicts import Resolution, Standing, resolve
from tidemill.errors import StoreUnavailable
from tidemill.sql.codes import verdict_of
from tidemill.sql.parts import Failure, tentatively
from tidemill.sql.program import Batch, Program, Row, Statement
from tidemill.sql.programs.complete import settle, store_children
from tidemill.sql.programs.env import Env, chunks, read_lease, select_each
from tidemill.sql.programs.notes import NoteWrites, write_notes
from tidemill.sql.rows import holder, job_id, standing
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Holder, NewJob
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState


@dataclass(frozen=True, slots=True)
class Stale:
    """A report that the fence rejected, and who held the job then."""

    outcome: Outcome
    holder: Holder


@dataclass(slots=True)
class Seen:
    """A job as the locked row says it, kept up with what this commit does to it."""

    row: Row
    standing: Standing
    holder: Holder
    recorded: dict[tuple[Attempt, WorkerId], Verdict | None] = field(
        default_factory=dict[tuple[Attempt, WorkerId], Verdict | None]
    )


@dataclass(slots=True)
class Writes:
    """What is to be written for the whole batch."""

    ended: list[JobId] = field(default_factory=list[JobId])
    ends: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    attempts: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    tags: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    notes: NoteWrites = field(default_factory=NoteWrites)
    children: list[NewJob] = field(default_factory=list[NewJob])


def commit(
    env: Env, reporter: Reporter, outcomes: Sequence[Outcome], now: datetime
) -> Program[tuple[tuple[Reported, ...], list[Stale]]]:
    """One answer per outcome, in order, and the stale ones among them.

    Plain successes are written by one fenced statement; what that did not write, and whatever is
    richer, is decided from the locked rows.
    """
    if not outcomes:
        return (), []
    judged = [storable(outcome, env.bounds) for outcome in outcomes]
    times = Counter(outcome.job_id for outcome in judged)
    plain = [each for each in judged if _is_plain(each) and times[each.job_id] == 1]
    finished = yield from _finish_plain(env, reporter, plain, now)
    rest = [each for each in judged if each.job_id not in finished]
    answers, stale = yield from _judge(env, reporter, rest)
    reported = tuple(
        Reported(each.job_id, each.attempt, Answer.APPLIED, JobState.SUCCEEDED)
        if each.job_id in finished
        else answers.pop(0)
        for each in judged
    )
    return reported, stale


def record_stale(
    env: Env, worker: WorkerId, stale: Sequence[Stale], now: datetime
) -> Program[None]:
    """Keep a record of each stale report, beside the attempts that counted."""
    rows = [_attempt_row(each.outcome, worker, None, now, each.holder) for each in stale]
    yield Batch("insert_attempt", rows)
    yield from prune_attempts(env, [each.outcome.job_id for each in stale], stale=True)


def prune_attempts(env: Env, ids: Sequence[JobId], *, stale: bool) -> Program[None]:
    """Keep the last records of each job only; the counters on the row know the rest."""
    kept = env.bounds.attempts_kept
    yield Batch("prune_attempts", [{"job_id": each, "stale": stale, "kept": kept} for each in ids])


def apply(
    seen: Seen, outcome: Outcome, worker: WorkerId, now: datetime, writes: Writes
) -> Resolution:
    """Decide what an admitted outcome makes of its job, and note what is to be written."""
    resolution = resolve(seen.standing, outcome)
    succeeded = resolution.state is JobState.SUCCEEDED
    due_at: object = seen.row["due_at"]
    if resolution.delay is not None:
        due_at = after(now, resolution.delay)
    writes.ended.append(outcome.job_id)
    writes.ends.append(
        {
            "id": outcome.job_id,
            "holder": worker,
            "attempt": outcome.attempt,
            "state": resolution.state,
            "worker": worker if succeeded else None,
            "due_at": due_at,
            "cause": resolution.cause,
            "finished_at": now if resolution.state.terminal else None,
            "failed": resolution.failed,
            "lapsed": resolution.lapsed,
            "output": outcome.output if succeeded else None,
        }
    )
    if not succeeded:
        started_at: object = seen.row["started_at"]
        writes.attempts.append(_attempt_row(outcome, worker, started_at, now, None))
    for tag in sorted(outcome.tags):
        writes.tags.append({"job_id": outcome.job_id, "tag": tag.key, "value": tag.value})
    writes.children += outcome.children
    return resolution


def write(env: Env, writes: Writes) -> Program[None]:
    """Write what was noted: a statement for each kind of row, not for each job.

    Raises:
        StoreUnavailable: a row moved on after it was read, although it was locked; nothing is
            written, and whoever asks again is judged anew.
    """
    yield from write_notes(writes.notes)  # first: they name who still holds the row
    if writes.ends:
        rows = yield Batch("end_attempt", writes.ends)
        _require_all(rows[0]["count"], len(writes.ends))
    if writes.attempts:
        yield Batch("insert_attempt", writes.attempts)
        ids = [JobId(row["job_id"]) for row in writes.attempts]  # type: ignore[arg-type]
        yield from prune_attempts(env, ids, stale=False)
    if writes.tags:
        yield Batch("insert_tag", writes.tags)
    yield from store_children(env, writes.children)


def _require_all(ended: int, judged: int) -> None:
    """The fence stands in the statement too: what it passed over was not what was judged."""
    if ended != judged:
        message = (
            f"Of {judged} attempts judged, {judged - ended} had moved on when they were to be "
            "written; nothing was. It will be asked again."
        )
        raise StoreUnavailable(message)


def see(env: Env, row: Row) -> Seen:
    return Seen(row, standing(env.dialect, row), holder(env.dialect, row))


def _is_plain(outcome: Outcome) -> bool:
    carries = outcome.output is not None or outcome.tags or outcome.children
    says = outcome.progress is not None or outcome.lines or outcome.in_transaction
    return outcome.verdict is Verdict.SUCCEEDED and not (carries or says)


def _finish_plain(
    env: Env, reporter: Reporter, plain: Sequence[Outcome], now: datetime
) -> Program[set[JobId]]:
    finished: set[JobId] = set()
    if not plain or not reporter.lease_live:
        return finished
    check(JobState.RUNNING, JobState.SUCCEEDED, By.SUCCESS)
    by_attempt: dict[Attempt, list[JobId]] = {}
    for outcome in plain:
        by_attempt.setdefault(outcome.attempt, []).append(outcome.job_id)
    for attempt, ids in by_attempt.items():
        for chunk in chunks(ids):
            tuple_fence = {"worker": reporter.worker, "attempt": attempt}
            rows = yield Statement("finish_plain", {"ids": tuple(chunk), "now": now, **tuple_fence})
            whole = len(rows) == len(chunk)
            finished.update(chunk if whole else [job_id(env.dialect, row) for row in rows])
    return finished


def _judge(
    env: Env, reporter: Reporter, outcomes: Sequence[Outcome]
) -> Program[tuple[list[Reported], list[Stale]]]:
    """Decide each outcome from its locked row, alone and in order.

    The clock and the lease are read again once the rows are locked: what was read before may have
    been overtaken by a sweep.
    """
    if not outcomes:
        return [], []
    jobs = yield from _lock(env, [each.job_id for each in outcomes])
    busy = yield from _held_by_others(env, outcomes, jobs)
    now, live = yield from read_lease(env, reporter.worker)
    reporter = replace(reporter, lease_live=live)
    answers: list[Reported] = []
    stale: list[Stale] = []
    writes, keyed = Writes(), Writes()
    for outcome in outcomes:
        if outcome.job_id in busy:
            answers.append(Reported(outcome.job_id, outcome.attempt, Answer.BUSY))
            continue
        seen = jobs.get(outcome.job_id)
        said = yield from _answer(reporter, outcome, seen)
        if said is Answer.APPLIED and seen is not None:
            _end(seen, outcome, reporter.worker, now, keyed if outcome.leaves_keys else writes)
        if said is Answer.APPLIED or (said is Answer.ALREADY_APPLIED and outcome.in_transaction):
            noted = keyed if outcome.leaves_keys else writes
            noted.notes.add(env, reporter.worker, outcome)
        if said is Answer.STALE and seen is not None:
            stale.append(Stale(outcome, seen.holder))
        answers.append(_reported(outcome, said, seen))
    yield from write(env, writes)
    waiting = yield from _write_keyed(env, keyed)
    yield from settle(env, [each.row for each in jobs.values()])
    return [_busy(each) if each.job_id in waiting else each for each in answers], stale


def _write_keyed(env: Env, keyed: Writes) -> Program[AbstractSet[JobId]]:
    """Write the ends that leave jobs with keys; answers those that have to wait for somebody.

    Another transaction may be about to take such a key, and only its end tells. It is waited for
    briefly, and then these ends are offered again, alone: nothing else waits for them (clause D4).
    """
    if not keyed.ended:
        return frozenset()

    def put_off(failure: Failure) -> AbstractSet[JobId]:
        if isinstance(failure, StoreUnavailable):
            return frozenset(keyed.ended)
        raise failure

    def written() -> Program[AbstractSet[JobId]]:
        yield from write(env, keyed)
        return frozenset()

    return (yield from tentatively(written, put_off))


def _busy(reported: Reported) -> Reported:
    return Reported(reported.job_id, reported.attempt, Answer.BUSY)


def _lock(env: Env, ids: Sequence[JobId]) -> Program[dict[JobId, Seen]]:
    """The rows that nobody else has locked, locked."""
    rows = yield from select_each("reported_jobs", ids)
    return {job_id(env.dialect, row): see(env, row) for row in rows}


def _held_by_others(
    env: Env, outcomes: Sequence[Outcome], locked: Mapping[JobId, Seen]
) -> Program[set[JobId]]:
    """The jobs that are there although they could not be locked (clause D4)."""
    rest = [each.job_id for each in outcomes if each.job_id not in locked]
    rows = yield from select_each("stored_jobs", rest)
    return {job_id(env.dialect, row) for row in rows}


def _answer(reporter: Reporter, outcome: Outcome, seen: Seen | None) -> Program[Answer]:
    if seen is None:
        return answer(reporter, outcome, None, None)
    said = answer(reporter, outcome, seen.holder, None)
    if said is not Answer.STALE:
        return said
    key = (outcome.attempt, reporter.worker)
    if key not in seen.recorded:
        named = {"job_id": outcome.job_id, "attempt": outcome.attempt, "worker": reporter.worker}
        rows = yield Statement("recorded_verdict", named)
        seen.recorded[key] = verdict_of(rows[0]["verdict"]) if rows else None
    return answer(reporter, outcome, seen.holder, seen.recorded[key])


def _end(seen: Seen, outcome: Outcome, worker: WorkerId, now: datetime, writes: Writes) -> None:
    """Apply, and remember it, since the same batch may hold the same report twice."""
    resolution = apply(seen, outcome, worker, now, writes)
    succeeded = resolution.state is JobState.SUCCEEDED
    seen.holder = replace(seen.holder, worker=worker if succeeded else None, state=resolution.state)
    seen.recorded[outcome.attempt, worker] = None if succeeded else outcome.verdict


def _reported(outcome: Outcome, said: Answer, seen: Seen | None) -> Reported:
    return Reported(
        outcome.job_id,
        outcome.attempt,
        said,
        None if seen is None else seen.holder.state,
        seen.holder if seen is not None and said is Answer.STALE else None,
    )


def _attempt_row(
    outcome: Outcome,
    worker: WorkerId,
    started_at: object,
    now: datetime,
    stale_against: Holder | None,
) -> dict[str, object]:
    error, against = outcome.error, stale_against
    return {
        "job_id": outcome.job_id,
        "attempt": outcome.attempt,
        "worker": worker,
        "verdict": outcome.verdict,
        "stale": against is not None,
        "started_at": started_at,
        "ended_at": now,
        "holder_worker": against.worker if against else None,
        "holder_attempt": against.attempt if against else None,
        "holder_state": against.state if against else None,
        "error_kind": error.kind if error else None,
        "error_message": error.message if error else None,
        "error_detail": error.detail if error else None,
    }
