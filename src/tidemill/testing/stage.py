"""Where a harness's jobs run: the app on a memory store in virtual time, inside a block."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import Self

from tidemill.app import Tidemill
from tidemill.errors import WrongContext
from tidemill.shell.inline import InlineCalls
from tidemill.shell.threads import DaemonThreads
from tidemill.store.memory import VirtualClock
from tidemill.testing.originals import Originals
from tidemill.testing.rig import Bench, Rig
from tidemill.testing.store import HarnessStore


class Stage:
    """The part of a harness that stands in for the app's own store while a block lasts.

    Args:
        mill: the app.
        start: the first instant.
        slots: attempts that run at once.
        inline: run plain handlers on the test's own thread.
        give_up_after: real seconds that one handler may take.
        most_executions: attempts of one run.
    """

    def __init__(
        self,
        mill: Tidemill,
        *,
        start: datetime,
        slots: int,
        inline: bool,
        give_up_after: float,
        most_executions: int,
    ) -> None:
        self.mill = mill
        self._start = start
        self._clock = VirtualClock(start)
        self._slots = slots
        self._inline = inline
        self._give_up_after = give_up_after
        self._most_executions = most_executions
        self._rigs: list[Rig] = []
        self._opened: ExitStack | None = None
        self._closed = False

    def __enter__(self) -> Self:
        if self._opened is not None or self._closed:
            message = "This harness was entered before; make a new one for another block."
            raise WrongContext(message)
        self.mill.load_imports()
        with ExitStack() as stack:
            stack.enter_context(self.mill.using(self.store))
            stack.callback(self._bench.threads.close)
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._opened is not None, "left before it was entered"
        self._closed = True
        self._opened.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    @cached_property
    def store(self) -> HarnessStore:
        """The memory store that stands in for the app's own."""
        return HarnessStore(
            self._clock,
            self.mill.bounds,
            patience=self._give_up_after,
            running=lambda: bool(self._rigs),
        )

    @property
    def now(self) -> datetime:
        """The virtual instant, in UTC: what `ctx.now()` says."""
        return self._clock()

    @cached_property
    def _bench(self) -> Bench:
        return Bench(
            store=self.store,
            definitions=Originals(self.mill.registry),
            threads=InlineCalls() if self._inline else DaemonThreads(self._slots, "harness"),
            start=self._start,
            slots=self._slots,
            give_up_after=self._give_up_after,
            most_executions=self._most_executions,
            scopes=lambda: self.mill.scopes,
        )

    def _require_open(self) -> None:
        if self._opened is None or self._closed:
            message = "The harness is not open: use it inside `async with` or `with`."
            raise WrongContext(message)
