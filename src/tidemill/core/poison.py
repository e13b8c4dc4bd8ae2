"""The interruption limit: a job that keeps killing its worker stops by itself (clause E4)."""

from __future__ import annotations

from tidemill.values.retry import Retry


def is_poison(retry: Retry, lapses_since_requeue: int) -> bool:
    """Whether the lapses since the last requeue exceed the interruption limit."""
    return lapses_since_requeue > retry.interruption_limit
