"""The node's own clock: durations only, never an instant that anyone decides by (clause A1)."""

from __future__ import annotations

import time
from collections.abc import Callable

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)

Monotonic = Callable[[], float]


def monotonic() -> float:
    """Seconds that only climb, and go on while the machine sleeps where the system can tell.

    A suspended machine's leases lapse; a clock that slept too would not notice (clause C7).
    """
    if _BOOTTIME is None:
        return time.monotonic()
    return time.clock_gettime(_BOOTTIME)
