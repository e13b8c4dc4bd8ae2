"""Jobs that a handler leaves to be stored with its attempt's success, as its worker sees them."""

from __future__ import annotations

from threading import Lock

from tidemill.errors import BoundExceeded, WrongContext
from tidemill.shell.completion import Completion
from tidemill.values.jobs import Claimed, NewJob


class Leaving:
    """One attempt's. Written and read from any thread.

    Args:
        job: the attempt's job, as it was claimed.
        completion: whether the attempt is being completed in a transaction.
    """

    __slots__ = ("_children", "_completion", "_job", "_lock", "_over")

    def __init__(self, job: Claimed, completion: Completion) -> None:
        self._job = job
        self._completion = completion
        self._lock = Lock()
        self._children: tuple[NewJob, ...] = ()
        self._over = False

    @property
    def children(self) -> tuple[NewJob, ...]:
        """What was left so far."""
        return self._children

    def add(self, child: NewJob, most: int) -> None:
        """Leave one more job.

        Raises:
            BoundExceeded: it is one more than `most`.
            WrongContext: the attempt is being completed in a transaction, or has ended.
        """
        with self._lock:
            self._require_open()
            children = (*self._children, child)
            if len(children) > most:
                what = "Number of jobs left with one outcome"
                raise BoundExceeded(what, len(children), most, "jobs")
            self._children = children

    def close(self) -> tuple[NewJob, ...]:
        """The handler has returned: answer what it left, and take no more."""
        with self._lock:
            self._over = True
            return self._children

    def _require_open(self) -> None:
        job = self._job
        if self._over:
            message = (
                f"Attempt {job.attempt} of job {job.id} has ended: nothing can be stored with its "
                "outcome any more. Nothing was enqueued."
            )
            raise WrongContext(message)
        if self._completion.begun:
            message = (
                f"Attempt {job.attempt} of job {job.id} is being completed in a transaction, which "
                "its jobs have to be part of. Nothing was enqueued. Call ctx.enqueue before "
                "ctx.complete_in, or handle.enqueue_in(tx, …) in the transaction."
            )
            raise WrongContext(message)
