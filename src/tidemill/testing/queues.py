"""Serving whatever queues there are."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.values.exchange import Share


class EveryQueue:
    """A dispatch policy that offers every slot to each known queue, in the order of their names.

    Args:
        queues: those known from the start; `learn` adds others.
    """

    def __init__(self, queues: Iterable[str]) -> None:
        self._queues = tuple(sorted(set(queues)))

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues served."""
        return self._queues

    def learn(self, found: Iterable[str]) -> bool:
        """Serve these queues too; whether one of them is new."""
        before = self._queues
        self._queues = tuple(sorted({*before, *found}))
        return self._queues != before

    def share(self, slots: int) -> tuple[Share, ...]:
        """Offer every slot to each queue in turn."""
        return tuple(Share(queue, slots) for queue in self._queues)
