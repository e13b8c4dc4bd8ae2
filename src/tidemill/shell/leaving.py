"""Jobs that a handler leaves to be stored with its attempt's success, as its worker sees them."""

from __future__ import annotations

from threading import RLock

from tidemill.errors import BoundExceeded, WrongContext
from tidemill.values.jobs import Claimed, NewJob


class Leaving:
    """One attempt's. Written and read from any thread.

    Args:
        job: the attempt's job, as it was claimed.
    """

    __slots__ = ("_children", "_job", "_lock", "_over", "_sealed")

    def __init__(self, job: Claimed) -> None:
        self._job = job
        self._lock = RLock()  # a signal handler may call while another call is under way
        self._children: list[NewJob] = []
        self._sealed = False
        self._over = False

    def add(self, child: NewJob, most: int) -> None:
        """Leave one more job.

        Raises:
            BoundExceeded: it is one more than `most`.
            WrongContext: the attempt is being completed in a transaction, or has ended.
        """
        with self._lock:
            self._require_open()
            count = len(self._children) + 1
            if count > most:
                raise BoundExceeded("Number of jobs left with one outcome", count, most, "jobs")
            self._children.append(child)

    def seal(self) -> tuple[NewJob, ...]:
        """The success is about to be written in a transaction: answer what goes with it.

        From here on no more can be left. Asked again, it answers the same.
        """
        with self._lock:
            self._sealed = True
            return tuple(self._children)

    def close(self) -> tuple[NewJob, ...]:
        """The handler has ended: answer what it left, and take no more."""
        with self._lock:
            self._over = True
            return tuple(self._children)

    def _require_open(self) -> None:
        job = self._job
        if self._over:
            message = (
                f"Attempt {job.attempt} of job {job.id} has ended: nothing can be stored with its "
                "outcome any more. Nothing was enqueued."
            )
            raise WrongContext(message)
        if self._sealed:
            message = (
                f"Attempt {job.attempt} of job {job.id} has been completed in a transaction, and "
                "the jobs that it left are part of that. Nothing was enqueued. Call ctx.enqueue "
                "before ctx.complete_in, and before the loop if the transaction may be run again; "
                "or call handle.enqueue_in(tx, …) in the transaction."
            )
            raise WrongContext(message)
