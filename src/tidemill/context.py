"""JobContext: what a handler knows about its attempt, and what it may say about it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import nan
from threading import RLock
from typing import Any, SupportsFloat, TypeVar, overload

from tidemill.bound import BoundJob
from tidemill.bridges.transactions import AsyncProxy, AsyncTx, SyncTx
from tidemill.client import JobRef
from tidemill.codec.log_fields import shown, text_of, write_fields
from tidemill.completing import Completer
from tidemill.core.admission import admit_tag
from tidemill.core.storable import storable_line, storable_progress
from tidemill.errors import BoundExceeded, InvalidValue, JobCancelled
from tidemill.leaving import Leaver
from tidemill.shell.cancellation import Cancellation
from tidemill.shell.talk import AttemptTalk
from tidemill.store.contract import Store
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.durations import Duration, duration
from tidemill.values.endings import CancelReason
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import Claimed
from tidemill.values.notes import LogLine, Progress
from tidemill.values.tags import Tag

R = TypeVar("R")

_ROUNDING = 0.01
"""How far beside 0 and 1 a fraction may be for a sum of small numbers that did not quite fit."""


class JobContext:
    """Given to a handler whose first parameter is annotated with it. Safe from any thread.

    Args:
        job: the attempt's job, as it was claimed.
        cancellation: what the worker asks the handler to stop with.
        now: tells the store's time.
        talk: how the worker hears of what the handler says and leaves.
        store: where the job is stored; None where this process has none.
        bounds: what the handler says and leaves is held against.
    """

    __slots__ = (
        "_bounds",
        "_cancellation",
        "_job",
        "_lock",
        "_now",
        "_store",
        "_tags",
        "_talk",
    )

    def __init__(
        self,
        job: Claimed,
        cancellation: Cancellation,
        now: Callable[[], datetime],
        talk: AttemptTalk,
        *,
        store: Store | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._job = job
        self._talk = talk
        self._store = store
        self._cancellation = cancellation
        self._now = now
        self._bounds = bounds
        self._lock = RLock()  # a signal handler may call while another call is under way
        self._tags: frozenset[Tag] = frozenset()

    def __repr__(self) -> str:
        return f"<JobContext {self.wire_name} {self.job_id} attempt {self.attempt}>"

    @property
    def job_id(self) -> JobId:
        """The job's id: the same in every attempt, so it makes a good idempotency key elsewhere."""
        return self._job.id

    @property
    def attempt(self) -> Attempt:
        """Which execution this is, from 1; it only ever climbs."""
        return self._job.attempt

    @property
    def queue(self) -> str:
        """The queue the job was claimed from."""
        return self._job.queue

    @property
    def tenant(self) -> str | None:
        """The tenant it was enqueued for."""
        return self._job.tenant

    @property
    def wire_name(self) -> str:
        """The name the job was stored under, which may be an alias of the handler's."""
        return self._job.wire_name

    @property
    def enqueued_at(self) -> datetime:
        """When it was stored (UTC, the store's clock)."""
        return self._job.created_at

    @property
    def due_at(self) -> datetime:
        """When it was due (UTC, the store's clock)."""
        return self._job.due_at

    @property
    def deadline(self) -> datetime | None:
        """When this attempt times out (UTC, the store's clock); None if it may run for ever."""
        return None if self._job.timeout is None else self._job.started_at + self._job.timeout

    def now(self) -> datetime:
        """The store's time (UTC); virtual in tests."""
        return self._now()

    @property
    def cancelled(self) -> bool:
        """Whether this attempt is asked to stop."""
        return self._cancellation.reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why it is asked to stop: operator, shutdown, lease-lost or timeout; None if it is not."""
        return self._cancellation.reason

    @property
    def sync(self) -> SyncContext:
        """The same for plain functions: `context.sync.wait_cancelled(timeout=…)`."""
        return SyncContext(self._cancellation)

    async def wait_cancelled(self) -> CancelReason:
        """Wait until this attempt is asked to stop, and answer why."""
        return await self._cancellation.wait()

    def raise_if_cancelled(self) -> None:
        """Stop here if this attempt is asked to stop.

        Raises:
            JobCancelled: it is. Let it out of the handler, and the attempt counts as stopped.
        """
        reason = self._cancellation.reason
        if reason is not None:
            message = f"Attempt {self.attempt} of job {self.job_id} was asked to stop: {reason}."
            raise JobCancelled(message)

    def add_tag(self, key: str, value: str = "") -> None:
        """Put a label, or a key with its value, on the job. It commits with a success.

        Raises:
            BoundExceeded: the tag is too large, or one too many.
            InvalidValue: the key is empty, or the text cannot be stored.
        """
        tag = Tag(key, value)
        admit_tag(tag, self._bounds)
        with self._lock:
            tags = self._tags | {tag}
            if len(tags) > self._bounds.tags_per_job:
                raise BoundExceeded("Number of tags", len(tags), self._bounds.tags_per_job, "tags")
            self._tags = tags

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Say how far this attempt has come: it is seen within about a second.

        `fraction` is from 0 to 1, where up to a hundredth beside them counts as 0 or 1; None
        where it cannot be said. Each word replaces the one before it, and the last one stays with
        the job. A message over 512 bytes is cut with a note. After `complete_in` it is seen when
        the attempt has ended.

        Raises:
            InvalidValue: the fraction is no number from 0 to 1.
        """
        word = Progress(_fraction(fraction), text_of(message), self._now())
        self._talk.notepad.put(storable_progress(word, self._bounds))

    def log(self, message: str, /, **fields: object) -> None:
        """Keep a line with this attempt, with whatever fields: `ctx.log("copied", rows=12)`.

        Lines are read with `mill.jobs.log(…)` and `tidemill jobs log`, from about a second later
        on, or after `complete_in` when the attempt has ended, and are kept however it ends, for the
        last 10 attempts. It never fails for what it is given: a field that JSON cannot say is kept
        as Python shows it, a message over 4,056 bytes is cut with a note, fields that do not fit
        with it into 4,096 are replaced by their size, and after 500 lines one more says that no
        further ones are kept. What a stale attempt logs is dropped.
        """
        most, number = self._bounds.log_lines, self._talk.notepad.next_number()
        if number > most + 1:
            return
        said = LogLine(number, self._now(), f"No more lines are kept: an attempt has {most:,}.")
        if number <= most:
            said = replace(said, message=text_of(message), fields=write_fields(fields))
        self._talk.notepad.put(None, (storable_line(said, self._bounds),))

    def enqueue(self, job: BoundJob[R], /) -> JobRef[R]:
        """Have a job stored with this attempt's success: `ctx.enqueue(handle.bind(…))`.

        Nothing is written now. It is stored in the transaction that records the success, or not at
        all: not when the handler raises, is stopped, or is told that its attempt is stale. Its
        delay counts from then; the tenant and the trace of this job are handed on. The idempotency
        key of this job is free for it. Where another active job carries its key it is not stored,
        and the reference leads to nothing.

        Raises:
            ConfigurationError: it is no call, or belongs to another app.
            BoundExceeded, InvalidValue: it cannot be stored, or is one too many.
            WrongContext: this attempt is being completed in a transaction, or has ended.
        """
        leaver = Leaver(self._job, self._talk.leaving, self._store, self._bounds)
        return leaver.leave(job)

    @overload
    def complete_in(self, tx: SyncTx, /, output: object = None) -> None: ...
    @overload
    def complete_in(
        self, tx: AsyncTx | AsyncProxy, /, output: object = None
    ) -> Coroutine[Any, Any, None]: ...
    def complete_in(
        self, tx: SyncTx | AsyncTx | AsyncProxy, /, output: object = None
    ) -> Coroutine[Any, Any, None] | None:
        """Complete this job in a transaction of yours: both commit, or neither (clause D8).

        What the handler wrote in `tx` is then written exactly once, if `tx` is on the store's own
        database. The success is fenced: `tx` holds the job's row from here to its end, so keep
        what is left of it short. Tags that were added and jobs that were enqueued before go with
        it. When the handler ends, the worker looks at what became of `tx`: a job that is not
        completed ends as the handler did, and one whose handler returned all the same has failed.
        Where you run a transaction again, call it again.

        With an async transaction it is awaited. `output` is what the job leaves, instead of what
        the handler returns.

        Raises:
            StaleAttempt: the job is this attempt's no more. Let it out, so that `tx` rolls back.
            AlreadyCompleted: an earlier transaction has committed; roll this one back.
            TransactionRefused: `tx` is no open transaction on the store's database.
            LockNotGranted: somebody holds the job's row; nothing is tried again on your connection.
            EncodingError: the output cannot be written down.
            BoundExceeded: the output is too large.
        """
        completer = Completer(self._job, self._talk, lambda: self.tags, self._store, self._bounds)
        return completer.complete_in(tx, output)

    @property
    def tags(self) -> frozenset[Tag]:
        """The tags this attempt has added."""
        return self._tags


def _fraction(said: object) -> float | None:
    if said is None:
        return None
    with suppress(Exception):  # too large for a float, no number, or whatever it does
        number = float(said) if isinstance(said, SupportsFloat) else nan
        if -_ROUNDING <= number <= 1 + _ROUNDING:
            return number
    message = (
        f"Progress {shown(said):.80} is no number from 0 to 1: say 0.45 for 45 %, and None where "
        "it cannot be said."
    )
    raise InvalidValue(message)


class SyncContext:
    """The waiting half of a context, for handlers that run in a thread."""

    __slots__ = ("_cancellation",)

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation

    def wait_cancelled(self, timeout: Duration | float | None = None) -> CancelReason | None:
        """Block until the attempt is asked to stop, and answer why; None if `timeout` is over.

        `timeout` is in seconds, a timedelta, or text with its unit. A handler that works in rounds
        uses this instead of sleeping between them.
        """
        if isinstance(timeout, (str, timedelta)):
            timeout = duration(timeout, "timeout").total_seconds()
        return self._cancellation.wait_in_thread(timeout)
