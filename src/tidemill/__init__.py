"""Durable background jobs in the database your application already runs."""

from tidemill.app import Tidemill
from tidemill.bound import BoundJob
from tidemill.client import JobRef
from tidemill.context import JobContext
from tidemill.declaring import JobGroup
from tidemill.errors import JobCancelled, JobNotSucceeded, ResultTimeout, TidemillError
from tidemill.injection import INJECTED, FromDishka
from tidemill.jobs import JobHandle
from tidemill.values.bounds import Bounds
from tidemill.values.endings import CancelReason
from tidemill.values.operators import Effect
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.wishes import Discard, RetryAfter, Snooze

__all__ = [
    "INJECTED",
    "BoundJob",
    "Bounds",
    "CancelReason",
    "Discard",
    "Effect",
    "FromDishka",
    "JobCancelled",
    "JobContext",
    "JobGroup",
    "JobHandle",
    "JobNotSucceeded",
    "JobRef",
    "JobState",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "Snooze",
    "Tidemill",
    "TidemillError",
]
