"""The state machine, whole, as one table (clauses B1 and B3).

The documentation's diagram is generated from `TABLE`, and the conformance kit walks every edge of
it on every store. A pair of states that is not here cannot happen: `check` raises.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tidemill.errors import IllegalTransition
from tidemill.values.states import JobState


class By(StrEnum):
    """What moves a job along an edge."""

    ENQUEUE = "enqueue"
    DUE = "due"
    RUN_NOW = "run now"
    CLAIM = "claim"
    CANCEL = "cancel"
    EXPIRY = "expiry"
    SUCCESS = "success"
    FAILURE = "failure"
    DISCARD = "discard"
    LAPSE = "lapse"
    SNOOZE = "snooze"
    RELEASE = "release"
    UNROUTABLE = "unroutable"
    CANCEL_HONOURED = "cancel honoured"
    INTERRUPTION_LIMIT = "interruption limit"
    REQUEUE = "requeue"


S = JobState
Edge = tuple[JobState | None, JobState]

TABLE: Final[dict[Edge, frozenset[By]]] = {
    (None, S.SCHEDULED): frozenset({By.ENQUEUE}),
    (None, S.READY): frozenset({By.ENQUEUE}),
    (S.SCHEDULED, S.READY): frozenset({By.DUE, By.RUN_NOW}),
    (S.SCHEDULED, S.CANCELLED): frozenset({By.CANCEL, By.EXPIRY}),
    (S.READY, S.RUNNING): frozenset({By.CLAIM}),
    (S.READY, S.CANCELLED): frozenset({By.CANCEL, By.EXPIRY}),
    (S.READY, S.DEAD): frozenset({By.INTERRUPTION_LIMIT}),
    (S.RUNNING, S.SUCCEEDED): frozenset({By.SUCCESS}),
    (S.RUNNING, S.SCHEDULED): frozenset({By.FAILURE, By.LAPSE, By.SNOOZE}),
    (S.RUNNING, S.READY): frozenset({By.FAILURE, By.LAPSE, By.SNOOZE, By.RELEASE}),
    (S.RUNNING, S.DEAD): frozenset({By.FAILURE, By.LAPSE, By.DISCARD, By.INTERRUPTION_LIMIT}),
    (S.RUNNING, S.CANCELLED): frozenset({By.CANCEL_HONOURED}),
    (S.RUNNING, S.QUARANTINED): frozenset({By.UNROUTABLE}),
    (S.DEAD, S.READY): frozenset({By.REQUEUE}),
    (S.QUARANTINED, S.READY): frozenset({By.REQUEUE}),
    (S.CANCELLED, S.READY): frozenset({By.REQUEUE}),
}


def check(before: JobState | None, after: JobState, by: By) -> JobState:
    """Answer `after` if the table has the edge.

    Raises:
        IllegalTransition: it does not; nothing may be written.
    """
    if by not in TABLE.get((before, after), frozenset()):
        start = "no job" if before is None else before.value
        message = f"There is no edge from {start} to {after.value} by {by.value}."
        raise IllegalTransition(message)
    return after


def sources(after: JobState, by: By) -> frozenset[JobState]:
    """The states that `by` may lead from to `after`."""
    return frozenset(
        before for (before, to), ways in TABLE.items() if to is after and by in ways and before
    )
