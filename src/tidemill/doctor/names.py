"""Wire names that wait: those that no worker of their queue knows, or the application does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tidemill.doctor.words import counted, listed
from tidemill.values.doctor import Finding, Result, WaitingName, Workforce
from tidemill.values.monitor import WorkerRecord


def judge_names(
    names: Iterable[WaitingName], force: Workforce, declared: frozenset[str] | None
) -> list[Finding]:
    """Findings about wire names that wait; `declared` are the application's, if it was named.

    A name in a queue that nobody serves is left to the finding about that queue.
    """
    waiting = tuple(names)
    serving = [name for name in waiting if _servers(name, force)]
    unknown = _count_by_name(
        name
        for name in serving
        if not force.more and not any(_knows(worker, name) for worker in _servers(name, force))
    )
    findings = [
        *_unknown(unknown, declared),
        *_undeclared(_count_by_name(waiting) - unknown, declared),
        *_not_told(force, declared),
    ]
    if findings:
        return findings
    if not serving:
        said = "None waits in a queue that is served."
    else:
        said = "Live workers know every name that waits in their queues."
    return [Finding("wire names", Result.OK, said)]


def _unknown(unknown: Counter[str], declared: frozenset[str] | None) -> list[Finding]:
    if not unknown:
        return []
    advice = (
        "Deploy a worker whose application declares it, under its old name if it was renamed; or "
        "run a worker with --quarantine-unknown to set its jobs aside."
    )
    if declared is not None and declared & unknown.keys():
        advice = (
            f"The application declares {_quoted(sorted(declared & unknown.keys()))}: its workers "
            "are older, or were started without --import of a module. Restart them."
        )
    return [
        Finding(
            "wire names",
            Result.PROBLEM,
            f"No live worker of its queue knows {_with_counts(unknown)}.",
            advice,
        )
    ]


def _undeclared(names: Counter[str], declared: frozenset[str] | None) -> list[Finding]:
    if declared is None:
        return []
    strange = Counter({name: count for name, count in names.items() if name not in declared})
    if not strange:
        return []
    return [
        Finding(
            "wire names",
            Result.WARNING,
            f"The application does not declare {_with_counts(strange)}.",
            "Name the application that does, or import the module that declares it.",
        )
    ]


def _not_told(force: Workforce, declared: frozenset[str] | None) -> list[Finding]:
    if not declared:
        return []
    live = force.live
    known = [worker.wire_names for worker in live]
    if not live or None in known:
        return []
    lacking = sorted(declared.difference(*(names for names in known if names is not None)))
    if not lacking:
        return []
    return [
        Finding(
            "wire names",
            Result.WARNING,
            f"The application declares {_quoted(lacking)}, which no live worker knows.",
            "Restart the workers: they run an older version of it, or another application.",
        )
    ]


def _count_by_name(names: Iterable[WaitingName]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name in names:
        counts[name.wire_name] += name.count
    return counts


def _with_counts(names: Counter[str]) -> str:
    ordered = sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
    return listed([f'"{name}" ({counted(count, "job")})' for name, count in ordered])


def _quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names])


def _servers(name: WaitingName, force: Workforce) -> list[WorkerRecord]:
    return [worker for worker in force.live if name.queue in worker.queues]


def _knows(worker: WorkerRecord, name: WaitingName) -> bool:
    return worker.wire_names is None or name.wire_name in worker.wire_names
