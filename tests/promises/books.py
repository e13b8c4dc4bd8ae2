"""The books of a run: what was enqueued, what bodies wrote down, and what was recorded, compared.

A lapse is never a fault here: bodies may run twice. What may not be is a job lost, an attempt
without its end, an end of no attempt, or a record that no body of that very attempt stands for.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tests.promises.site import Site
from tests.waiting import wait_until

from tidemill.store.monitor import ListJobs
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.ids import JobId
from tidemill.values.jobs import AttemptRecord, JobDetails
from tidemill.values.monitor import EVERY_JOB, JobFilter
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

COSTLY = (Verdict.FAILED, Verdict.DISCARDED, Verdict.UNROUTABLE)
Bodies = dict[str, list[int]]


def balanced(site: Site, job_ids: Iterable[JobId]) -> list[JobDetails]:
    """Wait until every job has ended, end the workers, and hold the books against each other."""
    wanted = list(job_ids)
    wait_until(site.all_ended)
    site.stop()
    wait_until(lambda: site.live_workers() == 0)  # the lease of a killed one has to end by itself
    jobs = site.jobs(wanted)
    faults = [*faults_of(site, jobs), *strangers(site, set(wanted))]
    assert not faults, "\n".join(faults)
    return jobs


def faults_of(site: Site, jobs: Iterable[JobDetails]) -> Iterator[str]:
    """A sentence for every entry that does not fit."""
    begun, finished = attempts_in(site, "begin"), attempts_in(site, "finish")
    for job in jobs:
        name = f"{job!r} with the ends {[(end.attempt, end.verdict.value) for end in ends_of(job)]}"
        faults = [*end_faults(job), *count_faults(job), *stale_faults(job)]
        faults += body_faults(job, begun[str(job.id)], finished[str(job.id)])
        yield from (f"{name}: {fault}" for fault in faults)


def attempts_in(site: Site, what: str) -> Bodies:
    """The attempts whose bodies wrote this word, by job."""
    found: Bodies = defaultdict(list)
    for line in site.lines():
        if line[0] == what:
            found[line[1]].append(int(line[2]))
    return found


def end_faults(job: JobDetails) -> Iterator[str]:
    """Attempts are numbered from 1 without a gap, and each has one end."""
    if not job.state.terminal:
        yield "it has not ended"
    if job.state is not JobState.SUCCEEDED and not job.cause:
        yield "it has no success, and nothing says why"
    others = job.attempt - (job.state is JobState.SUCCEEDED)
    expected = list(range(1, others + 1))[-DEFAULT_BOUNDS.attempts_kept :]
    ends = [each.attempt for each in ends_of(job)]
    if ends != expected[len(expected) - len(ends) :]:
        yield f"its ends should be those of {expected}"
    if len(job.attempts) < DEFAULT_BOUNDS.attempts_kept and len(ends) < len(expected):
        yield f"of {expected}, some have no end"


def count_faults(job: JobDetails) -> Iterator[str]:
    """What the row counts is what its ends tell, as far as they are kept."""
    if len(job.attempts) >= DEFAULT_BOUNDS.attempts_kept:
        return
    counted = Counter(each.verdict for each in ends_of(job))
    if job.record.lapses != counted[Verdict.LAPSED]:
        yield f"it counts {job.record.lapses} lapses"
    if job.record.failures > sum(counted[each] for each in COSTLY):
        yield f"it counts {job.record.failures} failures"


def stale_faults(job: JobDetails) -> Iterator[str]:
    """A stale report names both sides: they differ, or the lease of both was over."""
    lapsed = {each.attempt for each in ends_of(job) if each.verdict is Verdict.LAPSED}
    for each in job.attempts:
        if not each.stale:
            continue
        holder = each.holder
        if holder is None:
            yield "a stale report says nothing of the holder"
            continue
        same = (each.worker, each.attempt) == (holder.worker, holder.attempt)
        if same and each.attempt not in lapsed:
            yield "a report of the holder itself was stale, and it did not lapse"


def body_faults(job: JobDetails, begun: list[int], finished: list[int]) -> Iterator[str]:
    """A body for every success, of the very attempt that was recorded; none begins twice."""
    if len(set(begun)) < len(begun):
        yield f"an attempt's body began twice: {begun}"
    if any(not 1 <= attempt <= job.attempt for attempt in begun):
        yield f"bodies ran that no claim stands for: {begun}"
    if job.state is not JobState.SUCCEEDED:
        if job.output is not None:
            yield f"it left an output without a success: {job.output!r}"
        return
    if job.attempt not in finished:
        yield f"it succeeded, and the body of that attempt did not: {finished}"
    if job.output is None or json.loads(job.output) != job.attempt:
        yield f"its output is of another attempt: {job.output!r}"
    if job.tags != {Tag("attempt", str(job.attempt))}:
        yield f"its tags are of another attempt: {job.tags}"


def strangers(site: Site, wanted: set[JobId]) -> Iterator[str]:
    """What is in the tables, and nobody enqueued."""
    for job_id in Counter(listed(site, EVERY_JOB)) - Counter(wanted):
        yield f"{job_id} is in the tables, and nobody enqueued it"


def listed(site: Site, where: JobFilter) -> Iterator[JobId]:
    """The jobs in the tables, newest first."""
    cursor: str | None = None
    while True:
        asked = ListJobs(where=where, cursor=cursor, limit=DEFAULT_BOUNDS.page_size)
        page = site.store.perform_sync(asked)
        yield from (job.id for job in page.jobs)
        cursor = page.next_cursor
        if cursor is None:
            return


def children(site: Site) -> list[JobId]:
    """The jobs that were left by others."""
    return list(listed(site, JobFilter(wire_name="child")))


def assert_one_child_each(site: Site, parents: Iterable[JobDetails]) -> None:
    """Every job that succeeded left one child, of the very attempt that was recorded."""
    said = [json.loads(job.payload) for job in site.jobs(children(site))]
    left = Counter((each["parent"], each["attempt"]) for each in said)
    assert left == Counter((str(job.id), job.attempt) for job in parents)


def ends_of(job: JobDetails) -> list[AttemptRecord]:
    """The recorded ends of its attempts, without stale reports."""
    return [each for each in job.attempts if not each.stale]
