"""Notes: what running attempts say of themselves (clauses D1, D2)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.fence import Reporter, judge_note
from tidemill.core.storable import storable_note
from tidemill.store.cursors import cursor_after_line, read_line_cursor
from tidemill.store.memory.tables import Work
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.values.notes import JobLine, JobProgress, LogLine, LogPage, Note
from tidemill.values.outcomes import Answer, Outcome, Reported

_FIRST = (0, 0)


def take_notes(work: Work, operation: TakeNotes) -> tuple[Reported, ...]:
    worker = work.tables.workers.get(operation.worker)
    reporter = Reporter(operation.worker, worker is not None and worker.live(work.now))
    with work.tables.transaction():
        return tuple(_take(work, reporter, note) for note in operation.notes)


def _take(work: Work, reporter: Reporter, note: Note) -> Reported:
    row = work.tables.jobs.get(note.job_id)
    said = judge_note(reporter, note, row.holder if row else None)
    if said.answer is Answer.APPLIED:
        write_note(work, storable_note(note, work.bounds))
    return said


def write_note(work: Work, note: Note | Outcome) -> None:
    """Write down what an attempt said, which has been judged and made storable."""
    if note.progress is not None:
        row = work.tables.jobs[note.job_id]
        progress = JobProgress.of(note.attempt, note.progress)
        work.tables.save_job(row.now_says(replace(row.record, progress=progress)))
    if note.lines:
        _add_lines(work, note)


def _add_lines(work: Work, note: Note | Outcome) -> None:
    there = {(line.attempt, line.number): line for line in work.tables.lines(note.job_id)}
    for line in note.lines:
        there.setdefault((note.attempt, line.number), _job_line(note, line))
    oldest = note.attempt - work.bounds.attempts_kept
    kept = (line for place, line in sorted(there.items()) if place[0] > oldest)
    work.tables.save_lines(note.job_id, tuple(kept))


def _job_line(note: Note | Outcome, line: LogLine) -> JobLine:
    return JobLine(
        attempt=note.attempt,
        number=line.number,
        at=line.at,
        message=line.message,
        fields=line.fields,
    )


def read_log(work: Work, operation: ReadLog) -> LogPage:
    start = _FIRST if operation.cursor is None else read_line_cursor(operation.cursor)
    limit = min(max(operation.limit, 1), work.bounds.page_size)
    lines = work.tables.lines(operation.job_id)
    only = operation.attempt
    rest = [
        line
        for line in lines
        if (line.attempt, line.number) > start and only in {None, line.attempt}
    ]
    page = tuple(rest[:limit])
    if len(rest) <= limit:
        return LogPage(page, None)
    return LogPage(page, cursor_after_line(page[-1].attempt, page[-1].number))
