"""The examination: every question to the store, and the rules that judge the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Final, TypeVar

from tidemill.doctor.backlog import judge_backlog
from tidemill.doctor.database import Trip, judge_answer, judge_clock, judge_database
from tidemill.doctor.dead_letters import judge_dead_letters
from tidemill.doctor.environment import judge_environment
from tidemill.doctor.names import judge_names
from tidemill.doctor.stuck import judge_stuck
from tidemill.doctor.workers import judge_workers
from tidemill.errors import StoreError
from tidemill.store.contract import Operation, Store, SyncChannel
from tidemill.store.doctor import (
    ExamineBacklog,
    ExamineDeadLetters,
    ExamineNames,
    ExamineStuck,
    ExamineWorkers,
    ReadClock,
)
from tidemill.values.doctor import Finding, Result

R = TypeVar("R")

_TRIPS: Final = 5


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. `usable` says that the store answered and that its schema fits."""

    findings: tuple[Finding, ...]
    usable: bool

    @property
    def result(self) -> Result:
        """The worst of all results."""
        results = {finding.result for finding in self.findings}
        return next(each for each in (Result.PROBLEM, Result.WARNING, Result.OK) if each in results)


def examine(
    store: Store, environment: Mapping[str, str], *, declared: frozenset[str] | None = None
) -> Report:
    """Ask a store how it is, from this thread. Nothing is changed.

    Args:
        store: the store.
        environment: the variables of this process.
        declared: the wire names that an application declares, if one was named.
    """
    around = judge_environment(environment)
    try:
        health = store.examine()
    except StoreError as error:
        return Report((unreachable(error), *around), usable=False)
    findings = judge_database(health)
    if not health.schema.fits:
        return Report((*findings, *around), usable=False)
    try:
        with store.looking() as look:
            trip = _quickest(look)
            work = _work(look, declared)
    except StoreError as error:
        return Report((unreachable(error), *findings, *around), usable=False)
    first = (judge_answer(health, trip), judge_clock(health, trip))
    return Report((*first, *findings, *work, *around), usable=True)


def unreachable(error: StoreError) -> Finding:
    """The finding about a store that does not answer."""
    said = " ".join(str(error).split())
    return Finding("store", Result.PROBLEM, said, "Nothing else could be looked at.")


def _quickest(look: SyncChannel) -> Trip:
    """The quickest of a few trips on an open connection; the first may have to connect."""
    trips: list[Trip] = []
    for _ in range(_TRIPS):
        sent, began = datetime.now(UTC), perf_counter()
        answer = look.perform(ReadClock())
        received = sent + timedelta(seconds=perf_counter() - began)
        trips.append(Trip(sent, answer, received))
    return min(trips, key=lambda trip: trip.took)


def _work(look: SyncChannel, declared: frozenset[str] | None) -> list[Finding]:
    force, findings = _asked(look, ExamineWorkers(), "workers")
    backlog, fault = _asked(look, ExamineBacklog(), "queues")
    findings += fault
    if force is not None:
        findings += judge_workers(force, work_waits=backlog is None or bool(backlog.queues))
        findings += [] if backlog is None else judge_backlog(backlog, force)
        findings += _judged(
            look, ExamineNames(), "wire names", lambda it: judge_names(it, force, declared)
        )
    findings += _judged(look, ExamineStuck(), "running", judge_stuck)
    findings += _judged(look, ExamineDeadLetters(), "dead letters", judge_dead_letters)
    return findings


def _judged(
    look: SyncChannel, operation: Operation[R], check: str, judge: Callable[[R], Iterable[Finding]]
) -> list[Finding]:
    answer, findings = _asked(look, operation, check)
    return findings if answer is None else list(judge(answer))


def _asked(
    look: SyncChannel, operation: Operation[R], check: str
) -> tuple[R | None, list[Finding]]:
    """The answer, or the finding that there was none: the other checks go on."""
    try:
        return look.perform(operation), []
    except StoreError as error:
        advice = "The other checks went on. Ask again; if it stays so, look at the database's load."
        return None, [Finding(check, Result.PROBLEM, f"Could not be looked at: {error}", advice)]
