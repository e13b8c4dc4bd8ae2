"""What a job hands on to the jobs that its handler enqueues: its tenant and trace (clause F6)."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from tidemill.values.jobs import Claimed


@dataclass(frozen=True, slots=True)
class Ambient:
    """What is around a call: that of the job whose handler makes it, or nothing."""

    tenant: str | None = None
    trace_context: str | None = None


_ambient: ContextVar[Ambient] = ContextVar("tidemill_ambient", default=Ambient())  # noqa: B039 - it is frozen


def enter(job: Claimed) -> None:
    """From here on, in this task or thread alone, be around the calls of this job's handler."""
    _ambient.set(Ambient(job.tenant, job.trace_context))


def ambient() -> Ambient:
    """What is around this call."""
    return _ambient.get()
