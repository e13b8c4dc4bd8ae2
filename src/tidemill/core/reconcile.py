"""Reconciliation: comparing what the store lists under a worker with what the node holds (C8).

Without it, a claim whose answer was lost would stay running for ever under a healthy worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.values.workers import Pair


@dataclass(slots=True)
class Sightings:
    """Attempts that the store listed and nobody here holds.

    An attempt is given back when it is seen so in two listings running. The second listing is
    younger than the answer to the first, so an attempt that ended in between is not in it; and an
    exchange that travels while both are read may itself be bringing the attempt, so it is waited
    for. `journey` numbers the exchange in flight at a reading; None when there is none.
    """

    _seen: dict[Pair, int | None] = field(default_factory=dict[Pair, int | None])

    def review(self, unknown: set[Pair], journey: int | None) -> list[Pair]:
        """Take a listing's unknown attempts; answer those to be given back, in order."""
        lost: list[Pair] = []
        kept: dict[Pair, int | None] = {}
        for pair in sorted(unknown):
            if pair not in self._seen or (journey is not None and self._seen[pair] == journey):
                kept[pair] = journey
            else:
                lost.append(pair)
        self._seen = kept
        return lost

    def forget(self) -> None:
        """Start over: another worker's listings come now."""
        self._seen.clear()
