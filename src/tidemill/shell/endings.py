"""What an exception says about an attempt, and what could not even be started."""

from __future__ import annotations

from datetime import timedelta

from tidemill.errors import DecodingError, JobCancelled
from tidemill.shell.captured import captured
from tidemill.shell.definitions import JobDefinition
from tidemill.values import causes
from tidemill.values.endings import (
    Discarded,
    Ending,
    Raised,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.wishes import Discard, RetryAfter, Snooze

NO_HANDLER = "tidemill.NoHandler"


class _Undecodable(Exception):
    """Carries a decoding error past a handler's own errors of the same kind."""


def decoded(definition: JobDefinition, job: Claimed) -> dict[str, object]:
    """The arguments of a job. What it raises says to `ending_of` that nothing could be run."""
    try:
        return definition.decode(job.payload)
    except DecodingError as error:
        raise _Undecodable from error


def ending_of(error: BaseException) -> Ending:
    """What an exception says about the attempt (clause E3). Never raises, whatever it is."""
    try:
        return _said_by(error)
    except BaseException as failure:  # noqa: BLE001 - a user's exception may do anything
        return Raised(captured(failure))


def _said_by(error: BaseException) -> Ending:
    match error:
        case RetryAfter():
            return Raised(captured(error), _wait(error.delay))
        case Discard():
            return Discarded(captured(error))
        case Snooze():
            return Snoozed(_wait(error.delay))
        case JobCancelled():
            return Stopped()
        case _Undecodable() if error.__cause__ is not None:
            return Unroutable(causes.PAYLOAD, captured(error.__cause__))
        case _:
            return Raised(captured(error))


def _wait(delay: object) -> timedelta:
    """A wait as it was asked for; a subclass may have put anything there. Raises TypeError."""
    if not isinstance(delay, timedelta):
        message = f"The handler asked for a wait of {delay!r}, which is no timedelta."
        raise TypeError(message)
    return delay


def no_handler(job: Claimed) -> Ending:
    """The ending of a job whose wire name nobody knows here."""
    message = f"No handler is registered here for the wire name {job.wire_name!r}."
    return Unroutable(causes.NO_HANDLER, ErrorInfo(NO_HANDLER, message))
