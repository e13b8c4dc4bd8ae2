"""The faults of the demonstration: one worker is killed, another sleeps past its lease.

Each is made at its share of the work, and only when it hurts: a worker is stopped, looked at, and
let go again unless attempts are running under it at that very moment. The one that will sleep must
not sit on a lock either: SQLite's would take everyone with it, and the store would rightly not call
that a lapse; on PostgreSQL the rows it holds could not be given back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

from tidemill.cli.demo.fleet import Fleet, WorkerProcess
from tidemill.cli.demo.tables import Tables
from tidemill.values.ids import WorkerId

KILL_AT = 0.40
PAUSE_AT = 0.60


class Phase(Enum):
    """What has happened so far."""

    WHOLE = auto()
    KILLED = auto()
    PAUSED = auto()
    RESUMED = auto()
    REJOINED = auto()


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that was made: on which worker, when, and how many attempts it caught."""

    number: int
    worker: WorkerId
    at: datetime
    attempts: int


class Faults:
    """Makes each fault once, when its time has come; `say` is told in a sentence."""

    def __init__(self, fleet: Fleet, tables: Tables, say: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._tables = tables
        self._say = say
        self.phase = Phase.WHOLE
        self.killed: Hit | None = None
        self.paused: Hit | None = None

    @property
    def over(self) -> bool:
        """Whether every fault was made and has passed."""
        return self.phase is Phase.REJOINED

    @property
    def missed(self) -> bool:
        """Whether a fault was not made yet: with no job left, it never will be."""
        return self.phase in {Phase.WHOLE, Phase.KILLED}

    @property
    def hits(self) -> list[Hit]:
        """The faults made so far."""
        return [hit for hit in (self.killed, self.paused) if hit is not None]

    def look(self, share: float) -> None:
        """Do what is due when this share of the jobs has succeeded."""
        match self.phase:
            case Phase.WHOLE if share >= KILL_AT:
                self._kill(self._fleet.workers[0])
            case Phase.KILLED if share >= PAUSE_AT:
                self._pause(self._fleet.workers[1])
            case Phase.PAUSED:
                self._resume(self._fleet.workers[1])
            case Phase.RESUMED:
                self._see_again(self._fleet.workers[1])
            case _:
                pass

    def _kill(self, worker: WorkerProcess) -> None:
        hit = self._catch(worker)
        if hit is None:
            worker.resume()
            return
        worker.kill()
        self.killed = hit
        self.phase = Phase.KILLED
        third = self._fleet.start()
        self._say(
            f"Worker {hit.number} killed (SIGKILL) with {hit.attempts} attempts running; "
            f"worker {third.number} started."
        )

    def _pause(self, worker: WorkerProcess) -> None:
        hit = self._catch(worker)
        if hit is None or not self._tables.calm():
            worker.resume()
            return
        self.paused = hit
        self.phase = Phase.PAUSED
        self._say(
            f"Worker {hit.number} paused (SIGSTOP) with {hit.attempts} attempts running; "
            f"its lease is {self._fleet.lease:g} s."
        )

    def _resume(self, worker: WorkerProcess) -> None:
        assert self.paused is not None
        record = self._tables.worker(self.paused.worker)
        if record is not None and (record.live or record.running):
            return
        worker.resume()
        self.phase = Phase.RESUMED
        self._say(
            f"Worker {worker.number} resumed (SIGCONT) after its lease; what it reports is stale."
        )

    def _see_again(self, worker: WorkerProcess) -> None:
        assert self.paused is not None
        record = self._tables.worker_of(worker.pid)
        if record is not None and record.live and record.id != self.paused.worker:
            self.phase = Phase.REJOINED
            self._say(f"Worker {worker.number} found out, and registered anew.")

    def _catch(self, worker: WorkerProcess) -> Hit | None:
        worker.pause()
        record = self._tables.worker_of(worker.pid)
        if record is None or not record.running:
            return None
        return Hit(worker.number, record.id, datetime.now(UTC), record.running)
