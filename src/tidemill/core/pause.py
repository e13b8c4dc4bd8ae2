"""Pausing a queue: no claims from it until it is resumed (clauses C2, J4)."""

from __future__ import annotations

from tidemill.values.operators import Effect, QueueResult


def pausing(queue: str, *, paused: bool, wanted: bool) -> QueueResult:
    """What the wish that a queue be paused, or not, makes of one that is `paused`, or not."""
    effect = Effect.UNCHANGED if paused is wanted else Effect.DONE
    return QueueResult(queue=queue, effect=effect, paused=wanted)
