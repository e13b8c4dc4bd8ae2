"""The audit: RECORDs, journal and tables held against each other. Pure.

The RECORDs say which jobs there must be, the journal which bodies began, the tables what was
recorded about them. None of the three is derived from another, so a job lost, done twice over or
recorded wrongly shows as a difference between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from tidemill.cli.demo.app import Checked
from tidemill.cli.demo.journal import Body
from tidemill.cli.demo.records import RecordedFile

SUCCEEDED: Final = "succeeded"
LAPSED: Final = "lapsed"
RELEASED: Final = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An attempt that did not succeed, or a report that was rejected as stale, as it is stored."""

    attempt: int
    worker: UUID
    verdict: str
    stale: bool
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A job as it is stored."""

    id: UUID
    state: str
    cause: str | None
    attempt: int
    lapses: int
    payload: bytes
    output: bytes | None
    ends: tuple[End, ...] = ()


@dataclass(slots=True)
class Totals:
    """What the demonstration's table shows. Counts, but for `size`, which is in bytes."""

    jobs: int = 0
    succeeded: int = 0
    attempts: int = 0
    lapses: int = 0
    released: int = 0
    failed: int = 0
    bodies: int = 0
    ran_twice: int = 0
    stale: int = 0
    mismatches: int = 0
    size: int = 0


@dataclass(slots=True)
class Audit:
    """The totals, and a sentence for each fault that was found."""

    totals: Totals = field(default_factory=Totals)
    faults: list[str] = field(default_factory=list[str])
    mismatched: list[str] = field(default_factory=list[str])
    lapsed: list[End] = field(default_factory=list[End])


def audit(
    wanted: Mapping[UUID, RecordedFile], jobs: Iterable[Entry], bodies: Iterable[Body]
) -> Audit:
    """Hold the three against each other; `wanted` has a file per job that was enqueued."""
    found = Audit()
    begun = _by_job(bodies)
    seen: Counter[UUID] = Counter()
    for job in jobs:
        seen[job.id] += 1
        file = wanted.get(job.id)
        if file is None:
            found.faults.append(f"Job {job.id} is in the tables, and nobody enqueued it.")
            continue
        _enter(found, job, begun.get(job.id, []))
        found.faults += _job_faults(job, file, begun.get(job.id, []))
        _compare(found, job, file)
    found.faults += _missing(wanted, seen, begun)
    found.faults += _sums(found.totals, len(wanted))
    return found


def _by_job(bodies: Iterable[Body]) -> dict[UUID, list[int]]:
    begun: dict[UUID, list[int]] = defaultdict(list)
    for body in bodies:
        begun[body.job_id].append(body.attempt)
    return begun


def _enter(found: Audit, job: Entry, begun: list[int]) -> None:
    totals = found.totals
    ends = Counter(each.verdict for each in job.ends if not each.stale)
    totals.jobs += 1
    totals.succeeded += job.state == SUCCEEDED
    totals.attempts += job.attempt
    totals.lapses += ends[LAPSED]
    totals.released += ends[RELEASED]
    totals.failed += ends.total() - ends[LAPSED] - ends[RELEASED]
    totals.bodies += len(begun)
    totals.ran_twice += len(begun) > 1
    totals.stale += sum(each.stale for each in job.ends)
    found.lapsed += [each for each in job.ends if not each.stale and each.verdict == LAPSED]


def _job_faults(job: Entry, file: RecordedFile, begun: list[int]) -> Iterator[str]:
    name = f"Job {job.id}"
    if job.state != SUCCEEDED:
        yield f"{name} is {job.state} ({job.cause}), and should have succeeded."
        return
    payload = msgspec.json.decode(job.payload, type=dict[str, str | int])
    if payload != file._asdict():
        yield f"{name} carries {payload}, and was enqueued for {file}."
    ends = sorted(each.attempt for each in job.ends if not each.stale)
    if ends != list(range(1, job.attempt)):
        yield (
            f"{name} succeeded at attempt {job.attempt}, so attempts 1 to {job.attempt - 1} must "
            f"each have one other end; the tables have ends for {ends}."
        )
    if job.lapses != sum(each.verdict == LAPSED for each in job.ends if not each.stale):
        yield f"{name} counts {job.lapses} lapses, and its attempts tell another number."
    if len(set(begun)) < len(begun):
        yield f"{name} has an attempt whose body began twice: {sorted(begun)}."
    if job.attempt not in begun:
        yield f"{name} succeeded at attempt {job.attempt}, whose body never began: {sorted(begun)}."
    if any(attempt > job.attempt for attempt in begun):
        yield f"{name} has bodies beyond its attempt {job.attempt}: {sorted(begun)}."


def _compare(found: Audit, job: Entry, file: RecordedFile) -> None:
    if job.state != SUCCEEDED:
        return
    if job.output is None:
        found.faults.append(f"Job {job.id} succeeded and has no output.")
        return
    checked = msgspec.json.decode(job.output, type=Checked)
    found.totals.size += checked.size
    is_right = checked.digest == file.digest and checked.size == file.size
    if is_right is not checked.matches:
        found.faults.append(f"Job {job.id} judged {file.path} wrongly: {checked}.")
    if not is_right:
        found.totals.mismatches += 1
        found.mismatched.append(file.path)


def _missing(
    wanted: Mapping[UUID, RecordedFile], seen: Counter[UUID], begun: Mapping[UUID, list[int]]
) -> Iterator[str]:
    for job_id in wanted:
        if not seen[job_id]:
            yield f"Job {job_id} was enqueued, and is not in the tables."
    for job_id, times in seen.items():
        if times > 1:
            yield f"Job {job_id} is listed {times} times."
    for job_id in begun:
        if job_id not in wanted:
            yield f"The journal has a body of job {job_id}, which nobody enqueued."


def _sums(totals: Totals, files: int) -> Iterator[str]:
    ends = totals.succeeded + totals.lapses + totals.released + totals.failed
    if totals.succeeded != files:
        yield f"{files:,} files were enqueued, and {totals.succeeded:,} successes are recorded."
    if ends != totals.attempts:
        yield f"{totals.attempts:,} attempts were started, and {ends:,} ends are recorded."
    if not files <= totals.bodies <= totals.attempts:
        yield (
            f"{totals.bodies:,} bodies began, which is not between the {files:,} files "
            f"and the {totals.attempts:,} attempts."
        )
