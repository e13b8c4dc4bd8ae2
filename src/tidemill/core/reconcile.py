"""Reconciliation: comparing what the store lists under a worker with what the node holds (C8).

Without it, a claim whose answer was lost would stay running for ever under a healthy worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.values.workers import Pair


@dataclass(frozen=True, slots=True)
class Sighting:
    """When an unknown attempt was first seen, and which exchange was in flight then, if any."""

    at: float
    journey: int | None


@dataclass(slots=True)
class Sightings:
    """Attempts that the store listed and nobody here holds.

    An attempt is given back when it is seen so in two listings running, the second of them asked
    for after the first was reviewed: an attempt that had ended by then is not in it, however long
    either of them lay unread. An exchange that travels while both are read may itself be bringing
    the attempt, so it is waited for.
    """

    _seen: dict[Pair, Sighting] = field(default_factory=dict[Pair, Sighting])

    def review(
        self, unknown: set[Pair], *, at: float, sent_at: float, journey: int | None
    ) -> list[Pair]:
        """Take a listing's unknown attempts; answer those to be given back, in order.

        Args:
            unknown: what the listing shows and the node does not hold.
            at: now.
            sent_at: when the listing was asked for.
            journey: the number of the exchange in flight now; None when there is none.
        """
        lost: list[Pair] = []
        kept: dict[Pair, Sighting] = {}
        for pair in sorted(unknown):
            first = self._seen.get(pair)
            if first is None:
                kept[pair] = Sighting(at, journey)
            elif sent_at < first.at or (journey is not None and journey == first.journey):
                kept[pair] = first
            else:
                lost.append(pair)
        self._seen = kept
        return lost

    def forget(self) -> None:
        """Start over: another worker's listings come now."""
        self._seen.clear()
