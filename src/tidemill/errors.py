"""Every error Tidemill raises on purpose, as one tree.

::

    TidemillError
    ├── ConfigurationError          a setting, URL or option that cannot work
    │   └── StoreNotConfigured      the app was used before it was given a store
    ├── DeclarationError            a job declared in a way that cannot work (raised at import)
    ├── EncodingError               an argument or output that cannot be written down
    ├── DecodingError               a stored payload or output that no longer reads
    ├── Refused                     the store will not take the request; nothing was written
    │   ├── BoundExceeded           something is larger than its bound
    │   ├── InvalidValue            something the store cannot hold or order
    │   │   └── ActionIdReused      the id of an operator action belongs to another one
    │   ├── JobIdConflict           the id is taken by a job with other content
    │   ├── WorkerIdUsed            the worker id was used before; every start makes a fresh one
    │   ├── ParentsNotSupported     dependencies are not available yet
    │   └── TransactionRefused      a transaction that cannot carry a job; it says what to do
    ├── NotFound                    no job has that id
    ├── JobNotSucceeded             a result was asked of a job that ended otherwise
    ├── ResultTimeout               a result was not there in time
    ├── WrongContext                a call that cannot be made from here
    ├── JobCancelled                a handler that honours a request to stop
    ├── StaleAttempt                a handler completes a job that is its attempt's no more
    ├── AlreadyCompleted            a handler completes its attempt a second time
    ├── StoreError                  the database could not be used
    │   ├── StoreUnavailable        transient: busy, cut, restarting; retried by the library
    │   ├── AnswerLost              the request may or may not have been committed
    │   ├── LockNotGranted          in your transaction: another one held a lock for too long
    │   └── SchemaError             the schema is missing or does not fit this version
    └── IllegalTransition           a programming error in Tidemill: an edge that does not exist

Expected outcomes (a duplicate key, a stale report, a job that cannot be cancelled) are values, not
errors. A message says what happened, the value, the bound, and what to do.
"""

from __future__ import annotations

from typing import Protocol


class TidemillError(Exception):
    """Base of every error that Tidemill raises on purpose."""


class ConfigurationError(TidemillError):
    """A setting, URL or option that cannot work."""


class StoreNotConfigured(ConfigurationError):
    """The app was used before it was given a store."""


class DeclarationError(TidemillError):
    """A job is declared in a way that cannot work. Raised where it is declared."""


class EncodingError(TidemillError):
    """An argument or an output cannot be written down; the message names which."""


class DecodingError(TidemillError):
    """A stored payload or output no longer reads as its declared type."""


class Refused(TidemillError):
    """The store will not take the request. Nothing was written."""


class BoundExceeded(Refused):
    """Something is larger than its bound; carries `what`, `actual` and `bound`."""

    def __init__(self, what: str, actual: int, bound: int, unit: str) -> None:
        """Say what is too large, by how much, and where the bound stands."""
        super().__init__(
            f"{what} is {actual:,} {unit}, over the bound of {bound:,} {unit}, and is refused. "
            "Make it smaller, or raise the bound: Tidemill(url, bounds=Bounds(...))."
        )
        self.what = what
        self.actual = actual
        self.bound = bound
        self.unit = unit


class InvalidValue(Refused):
    """A value that no store can hold or order, such as a NUL character in a key."""


class ActionIdReused(InvalidValue):
    """The id of an operator action was given to another action before."""


class JobIdConflict(Refused):
    """The job id is already taken by a job with other content."""


class WorkerIdUsed(Refused):
    """The worker id was used before: it lapsed, was deregistered, or is another worker's."""


class ParentsNotSupported(Refused):
    """The request names parents, and this version has no dependencies yet."""


class TransactionRefused(Refused):
    """What was given as a transaction is none, or is one that cannot carry a job."""


class NotFound(TidemillError):
    """No job has that id; carries the `job_id`."""

    def __init__(self, job_id: object) -> None:
        """Say which job is not there, and what to check."""
        super().__init__(
            f"There is no job {job_id} in this store. "
            "Check the id, and that this is the store it was enqueued in."
        )
        self.job_id = job_id


class AttemptError(Protocol):
    """What is kept of the exception that ended an attempt."""

    @property
    def kind(self) -> str:
        """Its name, `module.qualname`."""
        ...

    @property
    def message(self) -> str:
        """Its text."""
        ...

    @property
    def detail(self) -> str:
        """Its traceback; empty where none was kept."""
        ...


class JobNotSucceeded(TidemillError):
    """A result was asked of a job that ended otherwise.

    Attributes:
        job_id: which job.
        state: how it ended: `dead`, `cancelled` or `quarantined`.
        cause: why, where the state alone does not say.
        error: the error of its last attempt that had one; None if there was none, or if it could
            not be read.
    """

    def __init__(
        self, job_id: object, state: str, cause: str | None, error: AttemptError | None = None
    ) -> None:
        """Say how the job ended, with which error, and where to look."""
        why = "" if cause is None else f" (cause: {cause})"
        last = "" if error is None else f" Its last error was {_shown(error)}"
        super().__init__(
            f"Job {job_id} ended {state}{why}, so it has no result.{last}\n"
            f"See its attempts with `tidemill jobs show {job_id} --traceback`, "
            "or in mill.jobs.get(ref).attempts."
        )
        self.job_id = job_id
        self.state = state
        self.cause = cause
        self.error = error


class ResultTimeout(TidemillError, TimeoutError):
    """The job did not end within the given time. It is still there and still runs."""


class WrongContext(TidemillError):
    """A call that cannot be made from here, with the call that can."""


class JobCancelled(TidemillError):
    """Raised in a handler by `raise_if_cancelled`: it was asked to stop, and stops."""


class StaleAttempt(TidemillError):
    """Raised by `complete_in`: the job is this attempt's no more. Roll the transaction back."""


class AlreadyCompleted(TidemillError):
    """Raised by `complete_in`: an earlier call of this attempt has completed the job.

    That call's transaction has committed, also where its answer was lost, or it is this very one.
    Roll this one back: what it did is done already.
    """


class StoreError(TidemillError):
    """The database could not be used."""


class StoreUnavailable(StoreError):
    """A transient fault: busy, cut off, restarting. The transaction left no trace."""


class AnswerLost(StoreError):
    """The answer did not arrive: the request may or may not have been committed."""


class LockNotGranted(StoreError):
    """In a transaction of yours, a lock that another one holds was waited for as long as it may be.

    The library tries nothing again on your connection: roll back, and run your transaction again.
    """


class SchemaError(StoreError):
    """The schema is missing or does not fit this version of Tidemill."""


class IllegalTransition(TidemillError):
    """A state change that the table does not have: a programming error in Tidemill."""


def _shown(error: AttemptError) -> str:
    kind = error.kind.removeprefix("builtins.")
    return f"{kind}: {error.message}" if error.message else kind
