"""Making an outcome storable: recording how an attempt went never fails (clauses D6, D7, K1)."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from tidemill.core.admission import admit
from tidemill.errors import TidemillError
from tidemill.values.bounds import Bounds
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.tags import Tag

OUTPUT_TOO_LARGE = "tidemill.OutputTooLarge"
OUTCOME_REFUSED = "tidemill.OutcomeRefused"
CHILD_REFUSED = "tidemill.ChildRefused"

_CUT_FIELDS_BYTES = 40
"""Room for the word that stands for fields which are too large."""
_LONGEST_ESCAPE = 10
"""Bytes that one character may become: `\\U0010ffff`."""


def storable(outcome: Outcome, bounds: Bounds) -> Outcome:
    """The outcome as a store may write it.

    Error text is escaped and cut with a note; so are tags, progress and log lines, and those over
    their number are left out. An output over its bound, or a child that no store could hold, makes
    the attempt a failed one with that reason. Children go with a success, and with nothing else.
    """
    fitting = _fitting(outcome, bounds)
    if not _says_more(fitting):
        return fitting
    return replace(
        fitting,
        error=fitting.error and _storable_error(fitting.error, bounds),
        tags=_storable_tags(fitting.tags, bounds),
        cause=fitting.cause and storable_text(fitting.cause, bounds.name_bytes),
        progress=fitting.progress and storable_progress(fitting.progress, bounds),
        lines=_storable_lines(fitting.lines, bounds),
    )


def storable_note(note: Note, bounds: Bounds) -> Note:
    """The note as a store may write it: text is escaped and cut with a note of its length."""
    return replace(
        note,
        progress=note.progress and storable_progress(note.progress, bounds),
        lines=_storable_lines(note.lines, bounds),
    )


def bare(outcome: Outcome, why: str) -> Outcome:
    """The least that can be recorded of an outcome that a store refused whole, with its reason.

    What decides over the job stays: the verdict, the wait, the cause, and the names by which a
    policy judges an error. What is only kept goes: tags, progress, log lines, an error's detail. A
    success that left jobs, or had nothing of all that, cannot be stored with what follows from it,
    and so is none: it becomes a failed attempt with that reason, and keeps what it has said.
    """
    if outcome.verdict is not Verdict.SUCCEEDED:
        kept = outcome.error and replace(outcome.error, detail="")
        return replace(_silent(_without_gains(outcome)), error=kept)
    silent = replace(_silent(outcome), tags=frozenset())
    if silent != outcome and not outcome.children:
        return silent
    message = f"The store refused the full record of this attempt, which had succeeded: {why}"
    return _failed(outcome, ErrorInfo(OUTCOME_REFUSED, message))


def barest(outcome: Outcome) -> Outcome:
    """What any store can record of an attempt whose bare record it refused too: that it failed.

    In words that every database can hold. It is counted, whatever it was: an attempt that ran to
    its end and leaves nothing behind would be tried for nothing, for ever (clauses D6, E2). Only
    one that was given back to the queue stays so.
    """
    if outcome.verdict is Verdict.RELEASED:
        return _silent(outcome)
    message = "The store refused the record of this attempt, and the bare one as well."
    failed = _failed(outcome, ErrorInfo(OUTCOME_REFUSED, message))
    return replace(_silent(failed), delay=None, cause=None)


def storable_text(text: str, limit: int) -> str:
    """Text that any database can hold, in at most `limit` bytes of UTF-8.

    NUL and lone surrogates are written as escapes; what is too long is cut on a character, with a
    note of how long it was.
    """
    clean = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    if len(clean) <= limit:
        return clean.decode("utf-8")
    note = f" … [cut: {len(clean):,} bytes]".encode()
    kept = clean[: max(limit - len(note), 0)]
    return (kept + note)[:limit].decode("utf-8", "ignore")


def _failed(outcome: Outcome, error: ErrorInfo) -> Outcome:
    """The same attempt as a failed one, without what only a success brings."""
    return replace(_without_gains(outcome), verdict=Verdict.FAILED, error=error)


def _silent(outcome: Outcome) -> Outcome:
    return replace(outcome, progress=None, lines=())


def _without_gains(outcome: Outcome) -> Outcome:
    return replace(outcome, output=None, tags=frozenset(), children=())


def _says_more(outcome: Outcome) -> bool:
    """Whether it holds any text that may have to be made storable."""
    texts = (outcome.error, outcome.tags, outcome.cause, outcome.progress, outcome.lines)
    return any(texts)


def _fitting(outcome: Outcome, bounds: Bounds) -> Outcome:
    size = len(outcome.output) if outcome.output is not None else 0
    if size > bounds.output_bytes:
        message = (
            f"The handler returned an output of {size:,} bytes, over the bound of "
            f"{bounds.output_bytes:,} bytes; it was not stored."
        )
        return _failed(outcome, ErrorInfo(OUTPUT_TOO_LARGE, message))
    if not outcome.children:
        return outcome
    if outcome.verdict is not Verdict.SUCCEEDED:
        return replace(outcome, children=())
    why = _refused_children(outcome, bounds)
    return outcome if why is None else _failed(outcome, ErrorInfo(CHILD_REFUSED, why))


def _refused_children(outcome: Outcome, bounds: Bounds) -> str | None:
    """Why the jobs that an attempt leaves cannot be stored; None if they can."""
    count = len(outcome.children)
    if count > bounds.children:
        return (
            f"The handler left {count:,} jobs to be stored with its success, over the bound of "
            f"{bounds.children:,}; none was."
        )
    try:
        for child in outcome.children:
            admit(child, bounds)
    except TidemillError as error:
        return f"A job that the handler left cannot be stored, so none was: {error}"
    return None


def storable_progress(progress: Progress, bounds: Bounds) -> Progress:
    """The word as a store may write it: a fraction that is none is what comes nearest, or None."""
    fraction = progress.fraction
    if fraction is not None:
        fraction = min(max(fraction, 0.0), 1.0) if isfinite(fraction) else None
    return replace(
        progress,
        fraction=fraction,
        message=storable_text(progress.message, bounds.progress_message_bytes),
    )


def _storable_lines(lines: tuple[LogLine, ...], bounds: Bounds) -> tuple[LogLine, ...]:
    """The lines within their number, one more than which is left for a word on those left out."""
    last = bounds.log_lines + 1
    return tuple(storable_line(each, bounds) for each in lines if 0 < each.number <= last)


def storable_line(line: LogLine, bounds: Bounds) -> LogLine:
    """The line as a store may write it; fields that are too large are replaced by their size."""
    message = storable_text(line.message, max(bounds.log_line_bytes - _CUT_FIELDS_BYTES, 0))
    fields = storable_text(line.fields, len(line.fields) * _LONGEST_ESCAPE)
    size = len(fields.encode())
    if size > bounds.log_line_bytes - len(message.encode()):
        fields = f'{{"cut":"{size:,} bytes"}}'
    return replace(line, message=message, fields=fields)


def _storable_tags(tags: frozenset[Tag], bounds: Bounds) -> frozenset[Tag]:
    """Tags never influence execution, so they are made to fit and never fail an attempt."""
    clean = {
        Tag(storable_text(tag.key, bounds.name_bytes), storable_text(tag.value, bounds.name_bytes))
        for tag in tags
        if tag.key
    }
    return frozenset(sorted(clean)[: bounds.tags_per_job])


def _storable_error(error: ErrorInfo, bounds: Bounds) -> ErrorInfo:
    return replace(
        error,
        kind=storable_text(error.kind, bounds.key_bytes),
        message=storable_text(error.message, bounds.error_message_bytes),
        detail=storable_text(error.detail, bounds.error_detail_bytes),
    )
