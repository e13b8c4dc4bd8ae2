"""Sharing a claim between queues: strict, or smooth weighted round robin (clause J5).

A policy answers with `Share`s in the order to be tried. A store fills the shares first and then,
if room is left, goes over the queues again in the same order: so both policies conserve work, and
what is charged is what was asked for, never what happened to be found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidemill.errors import ConfigurationError
from tidemill.values.exchange import Share


class DispatchPolicy(Protocol):
    """How a worker shares its slots between its queues."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues served, in the order they were given."""
        ...

    def share(self, slots: int) -> tuple[Share, ...]:
        """Divide `slots` among the queues, and remember what was charged."""
        ...


@dataclass(slots=True)
class Strict:
    """The first queue goes first, always; a later one may starve."""

    queues: tuple[str, ...]

    def share(self, slots: int) -> tuple[Share, ...]:
        """Offer every slot to each queue in turn."""
        return tuple(Share(queue, slots) for queue in self.queues)


@dataclass(slots=True)
class Weighted:
    """Smooth weighted round robin: each slot goes to the queue with the highest credit.

    Deterministic: the same weights and the same calls give the same shares, however the slots are
    cut into calls. After every whole turn of the wheel (as many slots as the weights add up to)
    each queue has had exactly its weight, and in between none is ahead of its part by a slot.
    """

    weights: Mapping[str, int]
    _credit: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse weights that give a queue no turn at all."""
        for queue, weight in self.weights.items():
            if weight < 1:
                message = f"Queue {queue!r} has weight {weight}; a weight must be at least 1."
                raise ConfigurationError(message)
        self._credit = dict.fromkeys(self.weights, 0)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues served, in the order they were given."""
        return tuple(self.weights)

    def share(self, slots: int) -> tuple[Share, ...]:
        """Turn the wheel once per slot."""
        turns = dict.fromkeys(self.weights, 0)
        first_turn: list[str] = []
        for _ in range(slots):
            queue = self._turn()
            if not turns[queue]:
                first_turn.append(queue)
            turns[queue] += 1
        rest = [queue for queue in self.weights if not turns[queue]]
        return tuple(Share(queue, turns[queue]) for queue in [*first_turn, *rest])

    def _turn(self) -> str:
        total = 0
        for queue, weight in self.weights.items():
            self._credit[queue] += weight
            total += weight
        chosen = max(self._credit, key=self._credit.__getitem__)
        self._credit[chosen] -= total
        return chosen


def policy_for(queues: Sequence[str] | Mapping[str, int]) -> DispatchPolicy:
    """A strict policy for a list of names, a weighted one for names with weights.

    Raises:
        ConfigurationError: no queue, an empty name, or a name twice.
    """
    names = tuple(queues)
    if not names:
        message = "A worker needs at least one queue; name one, for example 'default'."
        raise ConfigurationError(message)
    if not all(names) or len(set(names)) != len(names):
        message = f"Queue names must be distinct and not empty; got {names!r}."
        raise ConfigurationError(message)
    return Weighted(dict(queues)) if isinstance(queues, Mapping) else Strict(names)
