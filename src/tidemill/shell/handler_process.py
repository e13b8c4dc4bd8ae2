"""A process in which handlers run, as its worker sees it.

It is started with a fresh interpreter and a pair of sockets, not by `multiprocessing`: that would
import the program's main module again in every process, keep a resource tracker beside them, and
forbid handlers to have processes of their own. It is in a process group of its own, so that
Ctrl-C does not reach it, and so that what a handler has started can be killed with it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Generator
from contextlib import suppress
from multiprocessing import Pipe
from threading import Lock
from typing import Any, Final

from tidemill.errors import ConfigurationError
from tidemill.shell.handler_talk import Do, Hello, Load, Logged, Reply, Stop
from tidemill.shell.interpreter import interpreter
from tidemill.shell.monotonic import monotonic
from tidemill.values.outcomes import ErrorInfo

PROCESS_ENDED: Final = "tidemill.ProcessEnded"
ANCESTRY: Final = (PROCESS_ENDED, "Exception", "BaseException")
"""A policy that names Exception means the end of a handler's process too."""

_MAIN = (
    "import sys; number, parent, *sys.path = sys.argv[1:]; "
    "from tidemill.shell.handler_main import main; main(int(number), int(parent))"
)
_LOOK_SECONDS: Final = 0.5
_LAST_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.01
_HUNG_UP: Final = (
    "The process of the handler hung up on its worker, which killed it: it became another program "
    "(os.exec…) or closed descriptors that are not its own. The worker goes on. Start programs "
    "with subprocess, and close only what you have opened."
)


def require_processes() -> None:
    """Refuse a system that has no sockets to hand to a process.

    Raises:
        ConfigurationError: it is one.
    """
    if os.name != "posix":
        message = (
            f'executor="process" needs a POSIX system, and this is {sys.platform}: run the worker '
            "elsewhere, or leave such jobs out of the modules that it imports."
        )
        raise ConfigurationError(message)


class HandlerProcess:
    """One process. Its replies are read by one thread; `stop` and `kill` are for any thread."""

    def __init__(self, load: Load) -> None:
        """Start it; it finds the jobs by itself.

        Raises:
            OSError: the system gives no further process.
        """
        self._lock = Lock()
        self._link, theirs = Pipe()
        try:
            with theirs:
                self._process = _start(theirs.fileno())
        except BaseException:
            self._link.close()
            raise
        _started.add(self)
        self._send(Hello(load, tuple(sys.argv), _levels()))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended. Its number stays its own until it is waited for."""
        if self._process.returncode is not None:
            return False
        if not hasattr(os, "waitid"):
            return self._process.poll() is None
        try:
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, look) is None
        except ChildProcessError:  # somebody else has waited for it
            return False

    def replies(self, order: Do) -> Generator[Reply]:
        """Have an attempt run; what is said of it, until the process is gone.

        Log records are handed to the loggers as they come.

        Raises:
            Exception: what was said cannot be understood.
        """
        self._send(order)
        while (reply := self._next()) is not None:
            if isinstance(reply, Logged):
                record = reply.record()
                logging.getLogger(record.name).handle(record)
            else:
                yield reply

    def stop(self, order: Stop) -> None:
        """Pass on that the attempt is to stop."""
        self._send(order)

    def kill(self) -> None:
        """End it at once, with everything it has started in its process group."""
        if self._process.returncode is None:
            for kill in (os.killpg, os.kill):  # a handler may have left its group
                with suppress(ProcessLookupError, PermissionError):
                    kill(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let it end in order, now if it is idle. For the thread that reads its replies."""
        with self._lock:
            self._link.close()

    def wait(self, timeout: float) -> bool:
        """Whether it has ended within `timeout` seconds."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def bury(self) -> ErrorInfo:
        """Have it, and what it has started, be gone, and say how it ended.

        One that ends by itself closes its sockets just before, so it is given a moment.
        """
        ended = self._ends_within(_LAST_SECONDS)
        self.kill()
        self._process.wait()
        self.close()
        how = _how(self._process.returncode) if ended else _HUNG_UP
        return ErrorInfo(PROCESS_ENDED, how, ancestry=ANCESTRY)

    def leave(self) -> None:
        """In a forked child: it is the parent's, and has to hear when that one ends."""
        self._link.close()

    def _ends_within(self, seconds: float) -> bool:
        """Whether it does, without waiting for it: what it has started is still to be killed."""
        over_at = monotonic() + seconds
        while self.alive:
            if monotonic() > over_at:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def _send(self, word: Any) -> None:
        """A process that is gone hears nothing: whoever reads its replies sees their end."""
        with self._lock, suppress(OSError):
            self._link.send(word)

    def _next(self) -> Any:
        """The next word; None when the process is gone."""
        try:
            # A program that a handler has started may keep the other end open.
            while not self._link.poll(_LOOK_SECONDS):
                if not self.alive:
                    return None
            return self._link.recv()
        except (EOFError, OSError):
            return None


def _start(number: int) -> subprocess.Popen[bytes]:
    """Start an interpreter as this one was started, with the descriptor of its end."""
    return subprocess.Popen(  # noqa: S603 - this very interpreter
        [
            *interpreter(),
            "-c",
            _MAIN,
            str(number),
            str(os.getpid()),
            *sys.path,
        ],
        stdin=subprocess.DEVNULL,
        pass_fds=(number,),
        process_group=0,
    )


def _levels() -> dict[str, int]:
    known = tuple(logging.root.manager.loggerDict.items())
    named = {
        name: logger.level
        for name, logger in known
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET
    }
    return {"": logging.root.level, **named}


def _how(code: int) -> str:
    if code >= 0:
        return (
            f"The process of the handler ended with exit code {code} before the handler was done. "
            "The worker goes on; look for sys.exit, os._exit or a library that ends its process."
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    memory = "; the system does so when memory runs out" if -code == signal.SIGKILL else ""
    return f"The process of the handler was ended by {name}{memory}. The worker goes on."


_started: weakref.WeakSet[HandlerProcess] = weakref.WeakSet()


def _after_fork() -> None:
    """A process ends when nobody holds the worker's end of its link any more."""
    for process in tuple(_started):
        process.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
