"""States and verdicts are small integers on disk and words everywhere else.

A code is never reused for another word: databases outlive versions.
"""

from __future__ import annotations

from typing import Final

from tidemill.values.outcomes import Verdict
from tidemill.values.states import TERMINAL, Held, JobState

STATES: Final[tuple[JobState, ...]] = (
    JobState.SCHEDULED,
    JobState.READY,
    JobState.AWAITING,
    JobState.RUNNING,
    JobState.SUCCEEDED,
    JobState.CANCELLED,
    JobState.DEAD,
    JobState.QUARANTINED,
)
VERDICTS: Final[tuple[Verdict, ...]] = (
    Verdict.SUCCEEDED,
    Verdict.FAILED,
    Verdict.DISCARDED,
    Verdict.CANCELLED,
    Verdict.UNROUTABLE,
    Verdict.RELEASED,
    Verdict.SNOOZED,
    Verdict.LAPSED,
)
HELD: Final[tuple[Held, ...]] = (Held.UNKNOWN_WIRE_NAME,)

# One table for each kind of word: `succeeded` is both a state and a verdict.
STATE_CODES: Final = {state: code for code, state in enumerate(STATES)}
VERDICT_CODES: Final = {verdict: code for code, verdict in enumerate(VERDICTS)}
HELD_CODES: Final = {held: code for code, held in enumerate(HELD)}


def state_of(code: int) -> JobState:
    return STATES[code]


def verdict_of(code: int) -> Verdict:
    return VERDICTS[code]


def held_of(code: int) -> Held:
    return HELD[code]


def state_fragments() -> dict[str, str]:
    """How statements spell states: `{{ready}}` is its code, as a literal.

    A literal, since a planner matches a partial index only with what it can read in the statement.
    """
    words = {state.value: str(code) for state, code in STATE_CODES.items()}
    active = (str(code) for state, code in STATE_CODES.items() if state not in TERMINAL)
    return {**words, "non_terminal": ", ".join(active)}
