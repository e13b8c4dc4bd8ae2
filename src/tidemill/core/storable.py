"""Making an outcome storable: recording how an attempt ended never fails (clauses D6, D7, K1)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.values.bounds import Bounds
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.tags import Tag

OUTPUT_TOO_LARGE = "tidemill.OutputTooLarge"
OUTCOME_REFUSED = "tidemill.OutcomeRefused"


def storable(outcome: Outcome, bounds: Bounds) -> Outcome:
    """The outcome as a store may write it.

    Error text is escaped and cut with a note; so are tags, and those over their number are left
    out. An output over its bound makes the attempt a failed one with that reason.
    """
    fitting = _fitting(outcome, bounds)
    if fitting.error is None and not fitting.tags and fitting.cause is None:
        return fitting
    return replace(
        fitting,
        error=fitting.error and _storable_error(fitting.error, bounds),
        tags=_storable_tags(fitting.tags, bounds),
        cause=fitting.cause and storable_text(fitting.cause, bounds.name_bytes),
    )


def bare(outcome: Outcome) -> Outcome:
    """The least that can be recorded of an outcome that a store refused whole.

    What decides over the job stays: the verdict, the wait, the cause, and the names by which a
    policy judges an error. What is only kept goes: tags and the error's detail. A success whose
    output cannot be stored is none: it becomes a failed attempt with that reason.
    """
    if outcome.verdict is Verdict.SUCCEEDED:
        message = "The store refused the full record of this attempt, which had succeeded."
        error = ErrorInfo(OUTCOME_REFUSED, message)
        return replace(outcome, verdict=Verdict.FAILED, error=error, output=None, tags=frozenset())
    kept = outcome.error and replace(outcome.error, detail="")
    return replace(outcome, error=kept, output=None, tags=frozenset())


def barest(outcome: Outcome) -> Outcome:
    """What any store can record of an attempt whose bare record it refused too: that it failed.

    In words that every database can hold. It is counted, whatever it was: an attempt that ran to
    its end and leaves nothing behind would be tried for nothing, for ever (clauses D6, E2). Only
    one that was given back to the queue stays so.
    """
    if outcome.verdict is Verdict.RELEASED:
        return outcome
    message = "The store refused the record of this attempt, and the bare one as well."
    return replace(
        outcome,
        verdict=Verdict.FAILED,
        error=ErrorInfo(OUTCOME_REFUSED, message),
        delay=None,
        cause=None,
        output=None,
        tags=frozenset(),
    )


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


def _fitting(outcome: Outcome, bounds: Bounds) -> Outcome:
    size = len(outcome.output) if outcome.output is not None else 0
    if size <= bounds.output_bytes:
        return outcome
    message = (
        f"The handler returned an output of {size:,} bytes, over the bound of "
        f"{bounds.output_bytes:,} bytes; it was not stored."
    )
    error = ErrorInfo(OUTPUT_TOO_LARGE, message)
    return replace(outcome, verdict=Verdict.FAILED, output=None, error=error, tags=frozenset())


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
