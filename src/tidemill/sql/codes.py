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


STATE_OF: Final = {code: state for state, code in STATE_CODES.items()}
VERDICT_OF: Final = {code: verdict for verdict, code in VERDICT_CODES.items()}
HELD_OF: Final = {code: held for held, code in HELD_CODES.items()}

UNKNOWN_STATE: Final = JobState.QUARANTINED
"""What stands for a code that nobody knows: no program moves such a row, only an operator can."""


def state_of(code: object) -> JobState:
    """The state of a code; whatever is none stands for `UNKNOWN_STATE`."""
    return STATE_OF.get(code, UNKNOWN_STATE) if isinstance(code, int) else UNKNOWN_STATE


def verdict_of(code: object) -> Verdict | None:
    """The verdict of a code; None for whatever is none."""
    return VERDICT_OF.get(code) if isinstance(code, int) else None


def state_fragments() -> dict[str, str]:
    """How statements spell states: `{{ready}}` is its code, as a literal.

    A literal, since a planner matches a partial index only with what it can read in the statement.
    """
    words = {state.value: str(code) for state, code in STATE_CODES.items()}
    active = (str(code) for state, code in STATE_CODES.items() if state not in TERMINAL)
    every = ", ".join(words.values())
    return {**words, "non_terminal": ", ".join(active), "every_state": every}
