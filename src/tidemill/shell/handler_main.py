"""A handler process from the inside: it runs one attempt after the other, and ends with its worker.

Handlers run on the main thread, coroutines on its event loop, by the same executor as in a worker.
A second thread listens: a request to stop is heard while a handler computes.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import logging.handlers
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import RLock, Thread
from typing import Any, Final

from tidemill.shell.captured import captured
from tidemill.shell.ears import Ears
from tidemill.shell.endings import NO_HANDLER
from tidemill.shell.execution import Execution, Executor
from tidemill.shell.handler_talk import (
    Begun,
    Completing,
    Do,
    Ended,
    Found,
    Hello,
    Logged,
    Noted,
    NotReady,
    Reply,
    Stop,
    inside,
)
from tidemill.shell.inline import InlineCalls
from tidemill.shell.monotonic import monotonic
from tidemill.shell.notepad import Said
from tidemill.shell.signals import take_signals
from tidemill.shell.speaking import Speaker
from tidemill.shell.store_time import StoreTime
from tidemill.values.endings import Ending, Raised
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.workers import Pair

_PR_SET_PDEATHSIG: Final = 1
_ABANDONED: Final = 1


class Mouth:
    """What is said to the worker, by any thread, one word at a time."""

    def __init__(self, link: Connection[Reply, Any]) -> None:
        self._link = link
        self._lock = RLock()  # what is pickled may log while it is

    def say(self, reply: Reply) -> None:
        """Send it.

        Raises:
            OSError: nobody listens any more.
            Exception: it cannot be pickled; nothing was sent.
        """
        with self._lock:
            self._link.send(reply)

    def say_what(self, take: Callable[[], Said]) -> None:
        """Send what is taken from a notepad, if anything is: nobody sends between the two.

        So an older word never overtakes a newer one, and none comes after the end of its attempt.
        """
        with self._lock:
            said = take()
            if said.anything:
                self.say(Noted(said))

    def fall_silent(self) -> None:
        """In a process that a handler has forked: the worker does not know it."""
        self._lock = RLock()
        self._link.close()


class LogLines(logging.handlers.QueueHandler):
    """Hands every record to the worker, whose log it is."""

    def __init__(self, mouth: Mouth) -> None:
        super().__init__(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - there is no queue
        self._mouth = mouth

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send it; what a record carries beside its text may be no data, and is then left out."""
        with suppress(OSError):  # the worker is gone, and so will this process be
            self._mouth.say(Logged.of(record))


class Servant:
    """Runs what the worker asks for until the worker asks no more."""

    def __init__(
        self,
        link: Connection[Any, Any],
        mouth: Mouth,
        found: Found,
    ) -> None:
        """Belong to the running loop."""
        self._link = link
        self._mouth = mouth
        self._time = StoreTime(monotonic)
        self._definitions = found.definitions
        self._executor = Executor(
            found.definitions, found.context_factory, self._time.now, InlineCalls(), found.scopes
        )
        self._speaker = Speaker(lambda notepad: self._pass_on(notepad.take))
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._busy = False
        self._running: tuple[Pair, Execution] | None = None

    async def serve(self) -> None:
        """Until the worker has closed its end."""
        Thread(target=self._listen, name="tidemill-handler-listener", daemon=True).start()
        await self._over
        self._speaker.close()

    def _listen(self) -> None:
        while True:
            try:
                order: Do | Stop = self._link.recv()
            except (EOFError, OSError):
                break
            if isinstance(order, Do):
                self._busy = True
                self._loop.call_soon_threadsafe(self._do, order)
            else:
                self._stop(order)
        if self._busy:  # the worker has died, or given the attempt up: nobody wants its end
            os._exit(_ABANDONED)
        self._loop.call_soon_threadsafe(self._over.set_result, None)

    def _do(self, order: Do) -> None:
        if self._definitions.get(order.job.wire_name) is None:
            self._mouth.say(Begun())
            self._ended(Raised(_unknown(order.job.wire_name)))
            return
        self._time.hear_at(order.now, order.at)
        ears = Ears(self._completing, self._speaker.note)
        execution = self._executor.start(order.job, self._ended, ears)
        self._running = (Pair(order.job.id, order.job.attempt), execution)
        self._mouth.say(Begun())  # from here on it may be told to stop

    def _completing(self) -> None:
        self._mouth.say(Completing())

    def _pass_on(self, take: Callable[[], Said]) -> None:
        with suppress(OSError):  # the worker is gone, and this process ends with it
            self._mouth.say_what(take)

    def _stop(self, order: Stop) -> None:
        """On the listener's thread, so that a handler which keeps the loop can see it."""
        running = self._running
        if running is not None and running[0] == order.pair:
            running[1].cancellation.set(order.reason)
        self._loop.call_soon_threadsafe(self._interrupt, order)

    def _interrupt(self, order: Stop) -> None:
        running = self._running
        if running is not None and running[0] == order.pair:
            running[1].cancel(order.reason)

    def _ended(self, ending: Ending) -> None:
        if self._running is not None:
            self._pass_on(self._running[1].end)
        self._running, self._busy = None, False
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        try:
            self._mouth.say(Ended(ending))
        except OSError:
            os._exit(_ABANDONED)
        except Exception as error:  # noqa: BLE001 - whatever cannot be sent, its reason can
            self._mouth.say(Ended(Raised(captured(error))))


def _unknown(wire_name: str) -> ErrorInfo:
    """Not quarantined: the worker knows the job, and the next one to run it may be another."""
    message = (
        f"The process for the handler knows no job {wire_name!r}, which its worker does. Was the "
        "application replaced while the worker ran? Restart the worker."
    )
    return ErrorInfo(NO_HANDLER, message, ancestry=(NO_HANDLER, "Exception", "BaseException"))


def main(number: int, parent: int) -> None:
    """Be a handler process of the worker in process `parent`, talking over this descriptor."""
    inside.set()
    os.set_inheritable(number, False)
    link: Connection[Any, Any] = Connection(number)
    _end_with(parent)
    mouth = Mouth(link)
    _leave_signals_to_the_worker()
    os.register_at_fork(after_in_child=mouth.fall_silent)
    try:
        hello: Hello = link.recv()
        _log_to(mouth, hello.levels)
        sys.argv[:] = hello.argv
        found = hello.load()
    except EOFError:
        return
    except BaseException as error:  # noqa: BLE001 - importing a user's module may raise anything
        mouth.say(NotReady(captured(error)))
        return

    async def serve() -> None:
        await Servant(link, mouth, found).serve()

    asyncio.run(serve())


def _end_with(parent: int) -> None:
    """Have this process killed when its worker dies, where the system can.

    Elsewhere the listener notices, as soon as the handler lets another thread run. The signal
    follows the thread that started this process; threads of a worker live as long as it does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died before that
        os._exit(_ABANDONED)


def _leave_signals_to_the_worker() -> None:
    """Signals that go to all processes at once are for the worker, which stops its handlers.

    A function that does nothing, since a signal that is ignored would be ignored by every program
    that a handler starts, too. What a handler forks obeys them as any process does.
    """
    take_signals(_heed_not)


def _heed_not(_number: int, _frame: object) -> None:
    """Do nothing."""


def _log_to(mouth: Mouth, levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)
    logging.getLogger().addHandler(LogLines(mouth))


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError):  # a handler has closed or replaced it
        return
