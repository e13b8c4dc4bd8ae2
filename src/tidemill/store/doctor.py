"""The doctor's reads: whether work gets done, and if not, what stands in its way.

None is on the claim path, and each is bounded: by how many rows it looks at or, where it counts all
that waits, by the time that a store allows to who is `looking`. They are one operation for each
question, so that one which takes too long takes no answer from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.store.contract import Operation
from tidemill.values.doctor import Backlog, DeadLetters, StuckWork, WaitingName, Workforce


@dataclass(frozen=True, slots=True)
class ReadClock(Operation[datetime]):
    """The store's time, and nothing else: what the quickest answer costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineWorkers(Operation[Workforce]):
    """The workers that live, then those whose lease ended within `ended_within`, newest first.

    Those that deregistered are left out.
    """

    ended_within: timedelta = timedelta(hours=1)
    limit: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineBacklog(Operation[Backlog]):
    """The queues with jobs that could run at once, those with the most first, then by name.

    All of these jobs are counted, from an index: it costs as much as there are.
    """

    limit: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineStuck(Operation[StuckWork]):
    """The running jobs that should have ended, by id, the first `limit` of each kind.

    A job is overdue when it has run for `margin` longer than its timeout, and unsettled when it was
    completed longer than that ago.
    """

    margin: timedelta = timedelta(minutes=1)
    limit: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineNames(Operation[tuple[WaitingName, ...]]):
    """Which wire names wait in which queues, the most frequent first, then by their words.

    At most `sample` jobs are looked at in each way of waiting: an estimate where more wait.
    """

    sample: int = 10_000
    limit: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineDeadLetters(Operation[DeadLetters]):
    """What ended dead or quarantined among the `newest` jobs, in its largest groups."""

    newest: int = 100_000
    limit: int = 5
