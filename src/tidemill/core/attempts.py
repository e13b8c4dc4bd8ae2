"""The attempts a node runs: started, asked to stop once with a reason, ended, given back (G3)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.commands import CancelHandler, Command, Execute
from tidemill.core.deadlines import Deadlines
from tidemill.core.endings import outcome_of, unless_completed
from tidemill.core.events import CompletionBegun, Finished, Noted
from tidemill.core.holdings import Holdings, Key, Pending, Running
from tidemill.core.notebook import Notebook, with_last_words
from tidemill.values.endings import CancelReason, Ending, Stopped
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.workers import Pair


class Attempts:
    """Turns what happens to handlers into outcomes, and wishes into commands to handlers."""

    def __init__(self, holdings: Holdings, notebook: Notebook, *, keep_tracebacks: bool) -> None:
        """Keep the books in `holdings`, and what handlers say in `notebook`."""
        self._holdings = holdings
        self._notebook = notebook
        self._keep_tracebacks = keep_tracebacks
        self._deadlines = Deadlines[Key]()

    @property
    def next_deadline(self) -> float:
        """When the next handler runs out of time; infinity when none does."""
        return self._deadlines.next

    def start(self, at: float, job: Claimed) -> Execute:
        """Take up a claimed job; its timeout counts from now."""
        pair = Pair(job.id, job.attempt)
        self._holdings.start(Running(job.worker, pair, at))
        if job.timeout is not None:
            self._deadlines.add((job.worker, pair), at + job.timeout.total_seconds())
        return Execute(job)

    def hear(self, event: CompletionBegun | Finished | Noted) -> None:
        """Take what a handler's execution has to say."""
        key = (event.worker, event.pair)
        running = self._holdings.running.get(key)
        if isinstance(event, Finished):
            self._finish(event)
        elif running is None or running.abandoned:
            return
        elif isinstance(event, Noted):
            self._notebook.write(key, event.progress, event.lines)
        else:  # from now on the row may say `succeeded` although the handler runs on
            running.completing = True
            self._notebook.close(key)

    def _finish(self, event: Finished) -> None:
        """A handler has really ended: its slot passes to its outcome, if there is one."""
        key = (event.worker, event.pair)
        running = self._holdings.running.pop(key, None)
        self._deadlines.drop(key)
        if running is None or running.abandoned:
            return
        self._report(running, event.ending)

    def stop(
        self,
        worker: WorkerId,
        pair: Pair,
        reason: CancelReason,
        commands: list[Command],
        actor: str | None = None,
    ) -> None:
        """Ask one handler to stop. The first reason stands, but a lost lease overrides it."""
        running = self._holdings.running.get((worker, pair))
        if running is not None and not running.abandoned:
            _ask(running, reason, commands, actor)

    def stop_all(self, commands: list[Command]) -> None:
        """Ask every handler to stop: the worker shuts down."""
        for running in self._holdings.active():
            _ask(running, CancelReason.SHUTDOWN, commands)

    def lose(self, worker: WorkerId, commands: list[Command]) -> None:
        """Tell every handler of a worker that its lease is lost."""
        for running in self._holdings.active():
            if running.worker == worker:
                _ask(running, CancelReason.LEASE_LOST, commands)

    def time_out(self, at: float, commands: list[Command]) -> None:
        """Ask the handlers whose time is up to stop."""
        for worker, pair in self._deadlines.due(at):
            self.stop(worker, pair, CancelReason.TIMEOUT, commands)

    def abandon(self) -> None:
        """Report every attempt whose handler will not stop as if it had: its end is ignored."""
        for running in self._holdings.active():
            running.abandoned = True
            self._report(running, Stopped())

    def _report(self, running: Running, ending: Ending) -> None:
        page = self._notebook.tear_out((running.worker, running.pair))
        outcome = outcome_of(running.pair, ending, running.reason)
        if outcome is None:
            return
        if running.completing:
            outcome = unless_completed(outcome)
        if outcome.error is not None and not self._keep_tracebacks:
            outcome = replace(outcome, error=replace(outcome.error, detail=""))
        self._holdings.pending.append(Pending(running.worker, with_last_words(outcome, page)))

    def give_back(self, worker: WorkerId, pair: Pair) -> None:
        """Release an attempt: it costs its job nothing."""
        outcome = Outcome(job_id=pair.job_id, attempt=pair.attempt, verdict=Verdict.RELEASED)
        self._holdings.pending.append(Pending(worker, outcome))


def _ask(
    running: Running, reason: CancelReason, commands: list[Command], actor: str | None = None
) -> None:
    overrides = reason is CancelReason.LEASE_LOST and running.reason is not reason
    if running.reason is None or overrides:
        running.reason = reason
        commands.append(CancelHandler(running.worker, running.pair, reason, actor))
