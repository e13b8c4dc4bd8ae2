"""One run of the demonstration, from the RECORDs to the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from uuid import UUID

from tidemill.cli.demo.app import mill, verify
from tidemill.cli.demo.books import Audit, audit
from tidemill.cli.demo.faults import Faults, Hit
from tidemill.cli.demo.fleet import Fleet
from tidemill.cli.demo.journal import read_journal
from tidemill.cli.demo.places import LEASE_SECONDS, Place
from tidemill.cli.demo.records import RecordedFile
from tidemill.cli.demo.screen import Screen
from tidemill.cli.demo.tables import Tables
from tidemill.errors import TidemillError
from tidemill.values.states import JobState

CONCURRENCY = 16
DEADLINE_SECONDS = 100.0
_LOOK_SECONDS = 0.05
_SHORTEST_RUN_SECONDS = 4.0


class DemoFailed(TidemillError):
    """The demonstration could not show what it promises; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run: `faults` says whether workers are killed and paused on the way."""

    files: list[RecordedFile]
    directory: Path
    place: Place
    workers: int
    faults: bool
    slowed: bool

    @property
    def pace(self) -> float:
        """Seconds that each body waits, so that even a small run lasts until its faults."""
        if not self.slowed:
            return 0.0
        return _SHORTEST_RUN_SECONDS * self.workers * CONCURRENCY / len(self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of it. Seconds are measured from the enqueue on."""

    audit: Audit
    seconds: float
    enqueue_seconds: float
    exit_codes: list[int]
    hits: list[Hit]
    recovery_seconds: float | None
    """From the kill until the last job of the killed worker was given back."""
    longest_recovery: float
    """The longest that this may have taken on that store."""


def run(plan: Plan, screen: Screen) -> Ran:
    """Run it, and hold the books against each other.

    Raises:
        DemoFailed: it took too long, or was over before its faults could be made.
        WorkerEnded: a worker process ended unasked.
    """
    mill.configure(plan.place.url)
    fleet = Fleet(
        directory=plan.directory,
        url=plan.place.url,
        lease=LEASE_SECONDS,
        concurrency=CONCURRENCY,
        pace=plan.pace,
    )
    try:
        mill.store.migrate()
        return _run(plan, screen, fleet, Tables(mill.store, plan.place.ledger))
    finally:
        fleet.abandon()
        mill.close()


def _run(plan: Plan, screen: Screen, fleet: Fleet, tables: Tables) -> Ran:
    _start_workers(plan, screen, fleet, tables)
    start = monotonic()
    wanted = _enqueue(plan.files)
    enqueue_seconds = monotonic() - start
    screen.say(f"{len(wanted):,} jobs enqueued in {enqueue_seconds:.1f} s.")
    faults = Faults(fleet, tables, screen.say) if plan.faults else None
    _watch(len(wanted), screen, fleet, tables, faults)
    seconds = monotonic() - start
    screen.say("Every job has ended. The workers are told to stop (SIGTERM).")
    exit_codes = fleet.stop()
    screen.say("The RECORDs, the journal and the tables are held against each other.")
    found = audit(wanted, plan.place.ledger.entries(), read_journal(fleet.journal))
    return Ran(
        audit=found,
        seconds=seconds,
        enqueue_seconds=enqueue_seconds,
        exit_codes=exit_codes,
        hits=[] if faults is None else faults.hits,
        recovery_seconds=_recovery(found, faults),
        longest_recovery=plan.place.longest_recovery,
    )


def _start_workers(plan: Plan, screen: Screen, fleet: Fleet, tables: Tables) -> None:
    for _ in range(plan.workers):
        fleet.start()
    deadline = monotonic() + DEADLINE_SECONDS
    while sum(worker.live for worker in tables.workers()) < plan.workers:
        fleet.check()
        _in_time(deadline, "the workers had not registered")
        sleep(_LOOK_SECONDS)
    screen.say(f"{plan.workers} worker processes started on {plan.place.shown}.")


def _enqueue(files: list[RecordedFile]) -> Mapping[UUID, RecordedFile]:
    refs = mill.sync.enqueue_many(
        [verify.bind(path=file.path, digest=file.digest, size=file.size) for file in files]
    )
    return {ref.id: file for ref, file in zip(refs, files, strict=True)}


def _watch(total: int, screen: Screen, fleet: Fleet, tables: Tables, faults: Faults | None) -> None:
    deadline = monotonic() + DEADLINE_SECONDS
    while True:
        counts = tables.counts()
        screen.show(counts.get(JobState.SUCCEEDED, 0))
        ended = sum(count for state, count in counts.items() if state.terminal)
        if faults is not None:
            faults.look(ended / total)
        if ended >= total and nothing_left(faults):
            return
        fleet.check()
        _in_time(deadline, f"{total - ended:,} of {total:,} jobs had not ended")
        sleep(_LOOK_SECONDS)


def nothing_left(faults: Faults | None) -> bool:
    if faults is None:
        return True
    if faults.missed:
        raise DemoFailed(
            "Every job was done before both faults could be made; give it more files to do."
        )
    return faults.over


def _in_time(deadline: float, what: str) -> None:
    if monotonic() > deadline:
        raise DemoFailed(f"After {DEADLINE_SECONDS:.0f} s {what}. Look at the workers' logs.")


def _recovery(found: Audit, faults: Faults | None) -> float | None:
    if faults is None or faults.killed is None:
        return None
    hit = faults.killed
    ends = [lapse.ended_at for lapse in found.lapsed if lapse.worker == hit.worker]
    return max(((end - hit.at).total_seconds() for end in ends), default=None)
