"""Indexes: the ids of the rows that a reader looks for, in the order in which it wants them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from tidemill.values.ids import JobId
from tidemill.values.jobs import JobRecord
from tidemill.values.states import JobState

Key = tuple[Any, ...]
"""What the rows of a group are sorted by; its last element is the job's id."""

Place = tuple[Hashable, Key] | None
"""The group a row stands in and its key there; None if the index leaves it out."""


class Index:
    """The rows that `place` gives a place, sorted by their key within their group."""

    def __init__(self, place: Callable[[JobRecord], Place]) -> None:
        self._place = place
        self._groups: dict[Hashable, list[Key]] = {}

    def add(self, record: JobRecord) -> None:
        if place := self._place(record):
            group, key = place
            insort(self._groups.setdefault(group, []), key)

    def remove(self, record: JobRecord) -> None:
        if place := self._place(record):
            group, key = place
            keys = self._groups[group]
            del keys[bisect_left(keys, key)]
            if not keys:
                del self._groups[group]

    def first(self, group: Hashable = None) -> JobId | None:
        keys = self._groups.get(group)
        return keys[0][-1] if keys else None

    def ids(self, group: Hashable = None) -> tuple[JobId, ...]:
        return tuple(key[-1] for key in self._groups.get(group, ()))

    def before(self, key: Key | None, group: Hashable = None) -> Iterator[JobId]:
        """The ids whose keys stand before `key`, last first; all of them if it is None."""
        keys = self._groups.get(group, [])
        end = len(keys) if key is None else bisect_left(keys, key)
        return (keys[at][-1] for at in range(end - 1, -1, -1))

    def groups(self) -> tuple[Any, ...]:
        return tuple(self._groups)


def every(job: JobRecord) -> Place:
    return None, (job.id,)


def ready(job: JobRecord) -> Place:
    """By queue, in the order of a claim (clause C2). Held jobs are out of its way."""
    if job.state is not JobState.READY or job.held is not None:
        return None
    return job.queue, (-job.priority, job.due_at, job.id)


def held(job: JobRecord) -> Place:
    return (job.wire_name, (job.id,)) if job.held is not None else None


def scheduled(job: JobRecord) -> Place:
    return (job.queue, (job.due_at, job.id)) if job.state is JobState.SCHEDULED else None


def running(job: JobRecord) -> Place:
    return (job.worker, (job.id,)) if job.state is JobState.RUNNING else None


def expiring(job: JobRecord) -> Place:
    """What was never started and may not be started after some instant."""
    if job.attempt or job.not_after is None or job.state.terminal:
        return None
    return None, (job.not_after, job.id)


def unsettled(job: JobRecord) -> Place:
    return (None, (job.id,)) if job.unsettled else None


def keyed(job: JobRecord) -> Place:
    """Active jobs by tenant and idempotency key; no tenant is a scope of its own (clause F3)."""
    if job.idempotency_key is None or job.state.terminal:
        return None
    return (job.tenant, job.idempotency_key), (job.id,)
