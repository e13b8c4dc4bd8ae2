"""The states a job can be in, and why a ready job may be held."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. The words are the ones every surface shows."""

    SCHEDULED = "scheduled"
    READY = "ready"
    AWAITING = "awaiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    DEAD = "dead"
    QUARANTINED = "quarantined"

    @property
    def terminal(self) -> bool:
        """Whether only an operator can move the job from here."""
        return self in TERMINAL


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.CANCELLED, JobState.DEAD, JobState.QUARANTINED})
REQUEUEABLE = frozenset({JobState.CANCELLED, JobState.DEAD, JobState.QUARANTINED})


class Held(StrEnum):
    """Why a `ready` job is out of the claim's way."""

    UNKNOWN_WIRE_NAME = "unknown-wire-name"
