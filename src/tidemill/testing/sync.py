"""The harness for tests without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from datetime import datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tidemill.client import refuse_in_loop
from tidemill.jobs import JobHandle
from tidemill.testing.view import Job, JobView
from tidemill.values.durations import Duration
from tidemill.values.operators import ActionResult
from tidemill.values.states import JobState

if TYPE_CHECKING:
    from tidemill.testing.harness import Harness

P = ParamSpec("P")
R = TypeVar("R")


class SyncHarness:
    """`harness.sync`: the verbs of `Harness`, blocking. All of them share one event loop.

    Raises:
        WrongContext: from every verb, where an event loop runs in this thread.
    """

    def __init__(self, harness: Harness, runner: Callable[[], asyncio.Runner]) -> None:
        self._harness = harness
        self._runner = runner

    def run_until_idle(self, *, raise_errors: bool = True) -> int:
        """As `Harness.run_until_idle`."""
        return self._run("run_until_idle", lambda h: h.run_until_idle(raise_errors=raise_errors))

    def run_for(
        self,
        by: Duration | None = None,
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raise_errors: bool = True,
    ) -> int:
        """As `Harness.run_for`."""
        return self._run(
            "run_for",
            lambda h: h.run_for(
                by,
                weeks=weeks,
                days=days,
                hours=hours,
                minutes=minutes,
                seconds=seconds,
                raise_errors=raise_errors,
            ),
        )

    def advance(
        self,
        by: Duration | None = None,
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> datetime:
        """As `Harness.advance`."""
        return self._run(
            "advance",
            lambda h: h.advance(
                by, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds
            ),
        )

    def perform(self, handle: JobHandle[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Harness.perform`."""
        return self._run("perform", lambda h: h.perform(handle, *args, **kwargs))

    def job(self, job: Job) -> JobView:
        """As `Harness.job`."""
        return self._run("job", lambda h: h.job(job))

    def jobs(
        self,
        *,
        state: JobState | str | Iterable[JobState | str] | None = None,
        queue: str | None = None,
        handle: JobHandle[..., Any] | None = None,
    ) -> list[JobView]:
        """As `Harness.jobs`."""
        return self._run("jobs", lambda h: h.jobs(state=state, queue=queue, handle=handle))

    def cancel(self, job: Job, *, actor: str | None = None) -> ActionResult:
        """As `Harness.cancel`."""
        given = {} if actor is None else {"actor": actor}
        return self._run("cancel", lambda h: h.cancel(job, **given))

    def _run(self, verb: str, call: Callable[[Harness], Coroutine[Any, Any, R]]) -> R:
        refuse_in_loop(f"await harness.{verb}(...)")
        return self._runner().run(call(self._harness), context=copy_context())
