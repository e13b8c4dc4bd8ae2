"""What a node holds: attempts that run, outcomes not yet durable, and the slots both take.

A slot is taken by a claim from the moment it is asked for, by a handler until it has really
ended, and by its outcome until the store has answered for it. An outcome that travels together
with a claim frees its slot for that very claim, since both commit together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.values.endings import CancelReason
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Outcome
from tidemill.values.workers import Pair

_REMEMBERED = 4096
EXTRAS_AT_ONCE = 2_000
"""The most log lines and jobs left behind in one exchange, but for those of one outcome."""

Key = tuple[WorkerId, Pair]


@dataclass(slots=True)
class Running:
    """An attempt whose handler runs.

    Attributes:
        since: when this node learned of it.
        completing: its handler writes the success in a transaction of its own, so the store may
            list it as running no more (clause D8).
    """

    worker: WorkerId
    pair: Pair
    since: float
    reason: CancelReason | None = None
    abandoned: bool = False
    completing: bool = False


@dataclass(slots=True)
class Pending:
    """An outcome that waits to become durable.

    Attributes:
        not_before: when it may be offered again (its row was busy, or it was refused).
        busy: how often its row was found locked by somebody else.
        alone: offer it in an exchange of its own.
        bare_since: how many answers the store had given when it was last made lighter. None while
            it is whole.
        barest: nothing lighter than this can be recorded.
    """

    worker: WorkerId
    outcome: Outcome
    not_before: float = 0.0
    busy: int = 0
    alone: bool = False
    bare_since: int | None = None
    barest: bool = False

    @property
    def pair(self) -> Pair:
        """The attempt it reports."""
        return Pair(self.outcome.job_id, self.outcome.attempt)

    @property
    def extras(self) -> int:
        """The rows to be written beside its job's own: log lines and jobs that it leaves."""
        return len(self.outcome.lines) + len(self.outcome.children)


class Holdings:
    """Everything a node holds, and the count of its slots."""

    def __init__(self, slots: int) -> None:
        """Start empty, with room for `slots` attempts."""
        self.slots = slots
        self.running: dict[Key, Running] = {}
        self.pending: deque[Pending] = deque()
        self.travelling: tuple[Pending, ...] = ()
        self.reserved = 0
        self.dropped: dict[Key, Outcome] = {}
        """How attempts ended that the store would not let end: as many as its rows that run on
        under this worker. Forgotten with its lease."""
        self._seen: dict[Pair, None] = {}

    @property
    def free(self) -> int:
        """Slots that a claim sent now may fill; travelling outcomes free theirs with it."""
        return self.slots - len(self.running) - len(self.pending) - self.reserved

    @property
    def settled(self) -> bool:
        """Whether nothing is left to run or to report."""
        return not (self.pending or self.travelling or self.reserved or any(self.active()))

    def active(self) -> Iterator[Running]:
        """Attempts whose end is still to be reported."""
        return (running for running in self.running.values() if not running.abandoned)

    def start(self, running: Running) -> None:
        """Take up an attempt."""
        self.running[running.worker, running.pair] = running
        self._seen[running.pair] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def has_seen(self, pair: Pair) -> bool:
        """Whether this node has run this very attempt before."""
        return pair in self._seen

    def known_pairs(self, worker: WorkerId) -> set[Pair]:
        """Every attempt of `worker` that this node accounts for."""
        known = {pair for owner, pair in self.running if owner == worker}
        known.update(entry.pair for entry in self.pending if entry.worker == worker)
        known.update(entry.pair for entry in self.travelling if entry.worker == worker)
        return known

    def load(self, at: float, limit: int) -> tuple[Pending, ...]:
        """Move up to `limit` outcomes of one worker, oldest first, onto the journey."""
        ready = [entry for entry in self.pending if entry.not_before <= at]
        if not ready:
            return ()
        first = ready[0]
        batch = [first] if first.alone else _light_enough(first.worker, ready, limit)
        chosen = {id(entry) for entry in batch}
        self.pending = deque(entry for entry in self.pending if id(entry) not in chosen)
        self.travelling = tuple(batch)
        return self.travelling

    def unload(self) -> tuple[Pending, ...]:
        """The journey is over: answer what travelled, and free the reservation."""
        travelled, self.travelling, self.reserved = self.travelling, (), 0
        return travelled

    def put_back(self, entries: tuple[Pending, ...]) -> None:
        """Return outcomes to the front, in their order; one that was alone lets others go first."""
        if len(entries) == 1:
            self.pending.append(entries[0])
        else:
            self.pending.extendleft(reversed(entries))


def _light_enough(worker: WorkerId, ready: list[Pending], limit: int) -> list[Pending]:
    """The oldest outcomes of a worker that may travel together, at least one of them."""
    batch: list[Pending] = []
    load = 0
    for entry in ready:
        if entry.worker != worker or entry.alone:
            continue
        load += entry.extras
        if batch and (load > EXTRAS_AT_ONCE or len(batch) >= limit):
            break
        batch.append(entry)
    return batch
