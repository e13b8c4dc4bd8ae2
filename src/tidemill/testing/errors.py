"""What goes wrong in a test, as errors of the one tree."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from tidemill.errors import TidemillError
from tidemill.testing.view import JobView
from tidemill.values.ids import JobId
from tidemill.values.jobs import Claimed


class JobFailed(TidemillError):
    """A job ended `dead` or `quarantined`. Its last exception is the cause, where it is at hand.

    Attributes:
        job: the job as it stands.
    """

    def __init__(self, job: JobView) -> None:
        """Say how the job ended, and with what."""
        what = f"Job {job.wire_name} {job.id} ended {job.state}"
        why = "" if job.error is None else f": {job.error.kind}: {job.error.message}"
        super().__init__(f"{what} ({job.cause}) after attempt {job.attempt}{why}")
        self.job = job


class StuckHandler(TidemillError):
    """A handler did not end in the real time that a harness gives it.

    Attributes:
        jobs: the attempts that were running.
    """

    def __init__(self, jobs: tuple[Claimed, ...], limit: float, slots: int) -> None:
        """Name the attempts and what they may be waiting for."""
        names = ", ".join(f"{job.wire_name} {job.id} (attempt {job.attempt})" for job in jobs)
        alone = (
            " It runs one attempt at a time: if this handler waits for another job, give the "
            "harness concurrency=2 or more."
            if slots == 1
            else ""
        )
        super().__init__(
            f"Still running after {limit:g} s of real time: {names}. The handler was told to "
            "stop; a job whose handler did not finish is given back. "
            f"Virtual time moves only by `advance`.{alone} "
            "A handler that only is slow needs a larger give_up_after."
        )
        self.jobs = jobs


class Runaway(TidemillError):
    """Jobs went on for more executions than a harness allows in one run."""

    def __init__(self, limit: int, counts: Counter[str]) -> None:
        """Name the job that ran most."""
        wire_name, count = counts.most_common(1)[0]
        super().__init__(
            f"Still not idle after {limit:,} executions, {count:,} of them of {wire_name}: "
            "it may enqueue itself, or retry or snooze without a delay. "
            "If it is right, give the harness a larger most_executions."
        )


class NobodyRuns(TidemillError):
    """A result was waited for while nothing ran jobs."""

    def __init__(self, job_id: JobId, state: str, limit: float, now: datetime) -> None:
        """Say what runs jobs in a harness."""
        super().__init__(
            f"The result of job {job_id} was waited for {limit:g} s; the job is {state} and "
            "nothing runs it: in a harness jobs run inside `run_until_idle` only. Call that "
            f"first, and `advance` if the job is due after {now.isoformat()}."
        )
