"""What the demonstration watches while it runs: through the monitor, as any tool would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.cli.demo.ledgers import Ledger
from tidemill.store.monitor import CountJobs, ListWorkers
from tidemill.values.ids import WorkerId
from tidemill.values.monitor import WorkerRecord
from tidemill.values.states import JobState

if TYPE_CHECKING:
    from tidemill.store.contract import Store


@dataclass(frozen=True, slots=True)
class Tables:
    """The store's side of the story."""

    store: Store
    ledger: Ledger

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state; absent ones are zero."""
        found: dict[JobState, int] = {}
        for each in self.store.perform_sync(CountJobs()):
            found[each.state] = found.get(each.state, 0) + each.count
        return found

    def workers(self) -> tuple[WorkerRecord, ...]:
        """Every registered worker, oldest first."""
        return self.store.perform_sync(ListWorkers())

    def worker_of(self, pid: int) -> WorkerRecord | None:
        """The newest worker that a process registered."""
        mine = [worker for worker in self.workers() if worker.pid == pid]
        return mine[-1] if mine else None

    def worker(self, worker_id: WorkerId) -> WorkerRecord | None:
        """One worker; None when it is not registered."""
        return next((each for each in self.workers() if each.id == worker_id), None)

    def calm(self) -> bool:
        """Whether nobody sits on a lock that keeps the others waiting."""
        return self.ledger.calm()
