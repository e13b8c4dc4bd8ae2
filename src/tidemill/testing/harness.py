"""The harness: an app on a memory store in virtual time, its jobs run when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.app import Tidemill
from tidemill.core.dispatch import policy_for
from tidemill.errors import ConfigurationError
from tidemill.testing.running import Running
from tidemill.testing.time import START, instant
from tidemill.values.durations import Duration, duration

if TYPE_CHECKING:
    from tidemill.testing.sync import SyncHarness

MOST_EXECUTIONS = 10_000


class Harness(Running):
    """Runs an app's jobs in a test: deterministic, on virtual time, in the test's own event loop.

    From `with` or `async with` on, everything the app does goes to an empty memory store; when
    the block is left, however it is left, the app has its own store again (clause N1). Jobs run
    inside `run_until_idle`, `run_for` and `perform` only, by the decisions and the code that a
    worker runs them by. Time stands still until `advance` or `run_for` moves it.

    Args:
        mill: the app.
        start: the first instant, as an aware datetime or ISO 8601 text with its offset; by default
            2026-01-01T00:00Z.
        queues: the queues to serve, as for a worker; by default every queue that has jobs.
        concurrency: attempts that run at once. With one, the default, the order of execution is
            the order of the claim. Handlers that wait for each other need more.
        inline: run plain handlers on the test's own thread instead of another one: for database
            connections that belong to a thread. They cannot be interrupted then.
        give_up_after: how long one handler may take, in real time, before `StuckHandler`.
        most_executions: how many attempts one run may start before `Runaway`.

    Raises:
        ConfigurationError: a start, a queue or a bound that cannot work.
    """

    def __init__(
        self,
        mill: Tidemill,
        *,
        start: datetime | str = START,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        concurrency: int = 1,
        inline: bool = False,
        give_up_after: Duration = "10s",
        most_executions: int = MOST_EXECUTIONS,
    ) -> None:
        if concurrency < 1:
            message = f"concurrency={concurrency} leaves no slot; give at least 1."
            raise ConfigurationError(message)
        if queues is not None:
            policy_for(queues)
        super().__init__(
            mill,
            start=instant(start),
            slots=concurrency,
            inline=inline,
            give_up_after=duration(give_up_after, "give_up_after").total_seconds(),
            most_executions=most_executions,
        )
        self._queues = queues

    @property
    def sync(self) -> SyncHarness:
        """The same for tests without a loop: `h.sync.run_until_idle()`."""
        # It imports this module.
        from tidemill.testing.sync import SyncHarness  # noqa: PLC0415 - as said above

        return SyncHarness(self, lambda: self._runner)

    @cached_property
    def _runner(self) -> asyncio.Runner:
        assert self._opened is not None, "asked for by a harness that is open"
        return self._opened.enter_context(asyncio.Runner())
