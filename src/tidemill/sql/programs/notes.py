"""Notes: what running attempts say of themselves, written under the fence (clauses D1, D2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemill.core.fence import Reporter, judge_note
from tidemill.core.storable import storable_note
from tidemill.sql.program import Batch, Program, Statement
from tidemill.sql.programs.env import Env, read_lease, select_each
from tidemill.sql.progress import write_progress
from tidemill.sql.rows import holder, job_id, job_lines
from tidemill.store.cursors import cursor_after_line, read_line_cursor
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.notes import JobLine, LogPage, Note
from tidemill.values.outcomes import Answer, Outcome, Reported

_FIRST = (0, 0)


@dataclass(slots=True)
class NoteWrites:
    """What attempts said, to be written for the whole batch."""

    progress: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    lines: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    outdated: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def add(self, env: Env, worker: WorkerId, said: Note | Outcome) -> None:
        """Note down what an attempt said, which has been judged and made storable."""
        attempt = {"job_id": said.job_id, "attempt": said.attempt}
        if said.progress is not None:
            word = write_progress(said.attempt, said.progress)
            self.progress.append({**attempt, "worker": worker, "progress": word})
        for line in said.lines:
            text = {"message": line.message, "fields": line.fields}
            self.lines.append({**attempt, "number": line.number, "at": line.at, **text})
        last = said.attempt - env.bounds.attempts_kept
        if said.lines and last > 0:
            self.outdated.append({"job_id": said.job_id, "last": last})


def write_notes(writes: NoteWrites) -> Program[None]:
    """Write what was noted down: a statement for each kind of row, not for each job."""
    if writes.progress:
        yield Batch("write_progress", writes.progress)
    if writes.lines:
        yield Batch("insert_line", writes.lines)
    if writes.outdated:
        yield Batch("prune_lines", writes.outdated)


def take_notes(operation: TakeNotes, env: Env) -> Program[tuple[Reported, ...]]:
    """Judge each note by its locked row and by the lease, read once the rows are locked."""
    notes, worker = operation.notes, operation.worker
    if not notes:
        return ()
    rows = yield from select_each("reported_jobs", [note.job_id for note in notes])
    locked = {job_id(env.dialect, row): holder(env.dialect, row) for row in rows}
    rest = [note.job_id for note in notes if note.job_id not in locked]
    others = yield from select_each("stored_jobs", rest)
    busy = {job_id(env.dialect, row) for row in others}
    _now, live = yield from read_lease(env, worker)
    reporter, writes = Reporter(worker, live), NoteWrites()
    answers: list[Reported] = []
    for note in notes:
        if note.job_id in busy:
            answers.append(Reported(note.job_id, note.attempt, Answer.BUSY))
            continue
        said = judge_note(reporter, note, locked.get(note.job_id))
        if said.answer is Answer.APPLIED:
            writes.add(env, worker, storable_note(note, env.bounds))
        answers.append(said)
    yield from write_notes(writes)
    return tuple(answers)


def read_log(operation: ReadLog, env: Env) -> Program[LogPage]:
    """One line more than the page is read, to know whether another page follows."""
    start = _FIRST if operation.cursor is None else read_line_cursor(operation.cursor)
    only = operation.attempt
    attempt, number = start if only is None else max(start, (only, 0))
    limit = max(1, min(operation.limit, env.bounds.page_size))
    place = {"attempt": attempt, "number": number, "every": only is None, "only": only or 0}
    rows = yield Statement("job_log", {"id": operation.job_id, "limit": limit + 1, **place})
    lines = job_lines(env.dialect, rows[:limit])
    return LogPage(lines, _cursor(lines) if len(rows) > limit else None)


def _cursor(lines: Sequence[JobLine]) -> str | None:
    """After the last line whose place can be read, so that a page goes on."""
    placed = (line for line in reversed(lines) if line.attempt and line.number)
    last = next(placed, None)
    return None if last is None else cursor_after_line(last.attempt, last.number)


def log_end(env: Env, asked: JobId) -> Program[tuple[JobLine, ...]]:
    """The last lines of a job's log, oldest first."""
    limit = env.bounds.log_lines_shown
    rows = yield Statement("job_log_end", {"id": asked, "limit": limit})
    return job_lines(env.dialect, rows)[::-1]
