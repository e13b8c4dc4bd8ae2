"""How many outcomes travel together, and what becomes of one that is refused (clauses D4, D6).

A batch that had no answer is tried again in halves, so that one guilty outcome ends up alone and
its neighbours are recorded. Refused alone, its bare record is offered; refused again, that it
failed; refused once more, it is dropped. The last two only if the store has answered something else
meanwhile: a store that refuses everything is broken, and says nothing about the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.core.holdings import Pending
from tidemill.core.storable import bare, barest
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Outcome


@dataclass(slots=True)
class Batching:
    """The size of the next batch, from 1 to `most`, and the count of the store's answers."""

    most: int
    limit: int = field(init=False)
    answers: int = 0

    def __post_init__(self) -> None:
        """Start with the largest batch."""
        self.limit = self.most

    def answered(self, outcomes: int) -> None:
        """The store answered; batches may grow again if outcomes were among what it took."""
        self.answers += 1
        if outcomes:
            self.limit = min(self.limit * 2, self.most)

    def unanswered(self, outcomes: int) -> None:
        """Outcomes that travelled alone had no answer."""
        if outcomes > 1:
            self.limit = outcomes // 2

    def lighten(self, entry: Pending, why: str) -> Pending | None:
        """What to offer instead of an outcome that was refused alone, and why; None drops it."""
        if entry.bare_since is None:
            outcome = bare(entry.outcome, why)
            return Pending(entry.worker, outcome, alone=True, bare_since=self.answers)
        if self.answers <= entry.bare_since:
            return entry
        return None if entry.barest else self.lightest(entry.worker, entry.outcome)

    def lightest(self, worker: WorkerId, outcome: Outcome) -> Pending:
        """The least that can be offered of an outcome."""
        return Pending(worker, barest(outcome), alone=True, bare_since=self.answers, barest=True)
