"""The handler processes of one worker: one attempt at a time in each, used again and again.

A process is started when an attempt finds none idle, so there are never more of them than slots.
An attempt ends when its process has said so or is really gone, not before (clause G3).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock, Timer
from typing import Final

from tidemill.shell.attempt_notices import log_killed
from tidemill.shell.captured import captured
from tidemill.shell.handler_process import HandlerProcess
from tidemill.shell.handler_talk import (
    Begun,
    Completing,
    Do,
    Ended,
    Load,
    Logged,
    Noted,
    NotReady,
    Stop,
)
from tidemill.shell.monotonic import monotonic
from tidemill.shell.notepad import Notepad
from tidemill.values.endings import CancelReason, Ending, Raised, Stopped
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.workers import Pair

_CLOSE_SECONDS: Final = 2.0


class Processes:
    """Starts, lends and ends them. From any thread.

    Args:
        load: how a process finds the jobs.
        kill_after: seconds that an attempt has to end after it was asked to stop.
        now: the store's time.
    """

    def __init__(self, load: Load, kill_after: float, now: Callable[[], datetime]) -> None:
        self._load = load
        self._kill_after = kill_after
        self._now = now
        self._lock = Lock()
        self._idle: list[HandlerProcess] = []
        self._busy: set[HandlerProcess] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the end has come, in which whatever still runs is killed."""
        return self._closed

    def attempt(
        self, job: Claimed, begin_completion: Callable[[], None], notepad: Notepad
    ) -> ProcessAttempt:
        """An attempt that has not been started."""
        return ProcessAttempt(self, job, begin_completion, notepad, self._kill_after)

    def order(self, job: Claimed) -> Do:
        """What a process is told in order to run it."""
        return Do(job, self._now(), monotonic())

    def take(self, *, fresh: bool) -> HandlerProcess | None:
        """A process for one attempt, an idle one unless it has to be fresh; None after the end.

        Raises:
            OSError: the system gives no further process.
        """
        with self._lock:
            if self._closed:
                return None
            if self._idle and not fresh:
                process = self._idle.pop()
                self._busy.add(process)
                return process
        process = HandlerProcess(self._load)
        with self._lock:
            self._busy.add(process)
        if self.closed:
            process.kill()
        return process

    def give_back(self, process: HandlerProcess) -> None:
        """It has ended its attempt and may run another one."""
        with self._lock:
            self._busy.discard(process)
            if not self._closed:
                self._idle.append(process)
                return
        process.close()
        _see_off(process)

    def drop(self, process: HandlerProcess) -> ErrorInfo:
        """It is of no more use: have it be gone, and answer how it ended."""
        error = process.bury()
        with self._lock:
            self._busy.discard(process)
        return error

    def close(self) -> None:
        """End all of them, the idle ones in order, and wait until they are gone."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = tuple(self._busy)
        for process in busy:
            process.kill()
        for process in idle:
            process.close()
        _see_off(*idle, *busy)


def _see_off(*processes: HandlerProcess) -> None:
    """Wait until they have ended, and kill those that something left running keeps from it."""
    over_at = monotonic() + _CLOSE_SECONDS
    late = [each for each in processes if not each.wait(max(over_at - monotonic(), 0.0))]
    for process in late:
        process.kill()
    for process in late:
        process.wait(_CLOSE_SECONDS)


class ProcessAttempt:
    """One attempt in a process: `run` it on a thread, `stop` it from any other."""

    def __init__(
        self,
        processes: Processes,
        job: Claimed,
        begin_completion: Callable[[], None],
        notepad: Notepad,
        kill_after: float,
    ) -> None:
        self._processes = processes
        self._job = job
        self._pair = Pair(job.id, job.attempt)
        self._begin_completion = begin_completion
        self._notepad = notepad
        self._kill_after = kill_after
        self._lock = Lock()
        self._process: HandlerProcess | None = None
        self._reason: CancelReason | None = None
        self._timer: Timer | None = None
        self._begun = self._killed = self._over = False

    def run(self) -> Ending:
        """Run it, blocking this thread until it has really ended."""
        try:
            # An idle process may have died unseen, which is no fault of this attempt.
            return self._run_in_any(fresh=False) or self._run_in_any(fresh=True) or Stopped()
        except OSError as error:
            return Raised(captured(error))
        finally:
            with self._lock:
                self._over = True
                if self._timer is not None:
                    self._timer.cancel()

    def stop(self, reason: CancelReason) -> None:
        """Tell the handler; kill its process if it does not end in time. Only the first counts."""
        with self._lock:
            if self._over or self._reason is not None:
                return
            self._reason = reason
            self._timer = Timer(self._kill_after, self._kill)
            self._timer.daemon = True
            self._timer.start()
        self._pass_on()

    def _run_in_any(self, *, fresh: bool) -> Ending | None:
        """How it ended; None if it was not begun, in a process that is not a fresh one."""
        process = self._processes.take(fresh=fresh)
        if process is None or not self._belongs_to(process):
            return Stopped()
        try:
            ending = self._followed(process)
        except Exception as error:  # noqa: BLE001 - what it said makes no sense, whatever it was
            self._processes.drop(process)
            return Raised(captured(error))
        if ending is not None:
            return ending
        how = self._processes.drop(process)
        if self._killed or self._processes.closed:
            return Stopped()
        return Raised(how) if fresh or self._begun else None

    def _belongs_to(self, process: HandlerProcess) -> bool:
        with self._lock:
            self._process = process
            killed = self._killed
        if killed:
            self._processes.drop(process)
        return not killed

    def _followed(self, process: HandlerProcess) -> Ending | None:
        for reply in process.replies(self._processes.order(self._job)):
            match reply:
                case Begun():
                    with self._lock:
                        self._begun = True
                    self._pass_on()
                case Completing():
                    self._begin_completion()
                case Noted(said):
                    self._notepad.put(said.progress, said.lines)
                case Ended(ending):
                    self._let_go(process)
                    return ending
                case NotReady(error):
                    self._processes.drop(process)
                    return Raised(_not_ready(error))
                case Logged():
                    continue
        return None

    def _let_go(self, process: HandlerProcess) -> None:
        """Nobody may stop or kill it from here on: its next attempt is another one."""
        with self._lock:
            self._over = True
            self._process = None
            killed = self._killed
        if killed:
            self._processes.drop(process)
        else:
            self._processes.give_back(process)

    def _pass_on(self) -> None:
        """Say that it is to stop, once it has begun: a process that still loads does not listen."""
        with self._lock:
            process, reason = self._process, self._reason
            if self._begun and not self._over and process is not None and reason is not None:
                process.stop(Stop(self._pair, reason))

    def _kill(self) -> None:
        with self._lock:
            if self._over:
                return
            self._killed = True
            if self._process is not None:
                log_killed(self._job, self._reason, self._process.pid, self._kill_after)
                self._process.kill()


def _not_ready(error: ErrorInfo) -> ErrorInfo:
    message = (
        f"The process for the handler could not load the application: {error.kind}: "
        f"{error.message}. See its traceback; the worker itself had loaded it."
    )
    return ErrorInfo(error.kind, message, error.detail, error.ancestry)
