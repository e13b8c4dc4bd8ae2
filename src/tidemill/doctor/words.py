"""How findings speak of durations, sizes, counts and lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

SHOWN: Final = 3
"""The most names in one sentence."""
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_KILO: Final = 1_000
_TWO_PLACES: Final = 10


def lasting(duration: timedelta) -> str:
    """A duration in its two largest units: `3 d 4 h`, `2 min 5 s`; below a second in ms."""
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.{2 if seconds * 1000 < 1 else 0}f} ms"
    whole = int(seconds)
    for place, (length, unit) in enumerate(_UNITS):
        if whole >= length:
            more, rest = divmod(whole, length)
            smaller = _UNITS[place + 1] if place + 1 < len(_UNITS) else None
            second = rest // smaller[0] if smaller else 0
            return (
                f"{more} {unit} {second} {smaller[1]}" if smaller and second else f"{more} {unit}"
            )
    return "1 s"


def size(count: int) -> str:
    """A number of bytes: `0 B`, `4.1 kB`, `12 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _KILO:
            return _number(value, unit)
        value /= _KILO
    return _number(value, "TB")


def _number(value: float, unit: str) -> str:
    places = 1 if value < _TWO_PLACES and unit != "B" else 0
    return f"{value:.{places}f} {unit}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = SHOWN, *, of: int | None = None) -> str:
    """`a`, `a and b`, `a, b, c and 7 more`; `of` is how many there are, if `names` are not all."""
    shown = list(names[:most])
    more = max(of or 0, len(names)) - len(shown)
    if more:
        shown.append(f"{more:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def does(count: int, one: str, many: str) -> str:
    """The verb that goes with a count: `waits` or `wait`."""
    return one if count == 1 else many
