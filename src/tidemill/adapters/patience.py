"""How often, and after which pauses, what left no trace is tried again (clause M3)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

TRIES: Final = 4
_FIRST: Final = 0.02
_LONGEST: Final = 0.5


def pauses() -> Iterator[float]:
    """The seconds to wait before each further try.

    They grow, are bounded, and are random, so that those who met once do not meet again.
    """
    longest = _FIRST
    for _ in range(TRIES - 1):
        yield random.uniform(0, longest)  # noqa: S311 - spreads retries
        longest = min(longest * 4, _LONGEST)
