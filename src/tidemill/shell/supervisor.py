"""Several worker processes under one parent, which starts, restarts and ends them.

The parent loads no application and opens no database. Each worker has an identity and a lease of
its own, so that what befalls one of them costs the others nothing. Should the parent be killed, the
workers notice at once, by the end of their pipe, and end in order.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from tidemill.shell.monotonic import Monotonic, monotonic
from tidemill.shell.signals import END, ENDING, HURRY
from tidemill.shell.supervised import NUMBER, ORDERS

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""A worker that has run for so long is started again at once; one that falls sooner waits longer
each time, up to the longest pause."""
CANNOT_WORK: Final = 2
"""The exit code of a command, option or setting that cannot work."""
NO_STORE: Final = 3
"""The exit code of a worker that cannot use its store."""
_MEANINGS: Final = {
    CANNOT_WORK: "the command, an option or a setting cannot work",
    NO_STORE: "it could not use the store",
}

logger = logging.getLogger("tidemill.supervisor")


@dataclass(slots=True)
class Post:
    """A place for one worker process, whoever holds it.

    Attributes:
        number: from 1, for the log.
        process: the one that runs; None between two.
        orders: the descriptor that it is given orders by.
        started_at, resume_at: when it was started, and when the next one is to be.
        starts: how many there were.
        pause: the wait before the next one.
        useless: whether none so far could use the store, from the first one on.
        code: what the last one ended with, as `subprocess` has it; None before that.
    """

    number: int
    process: subprocess.Popen[bytes] | None = None
    orders: int = -1
    started_at: float = 0.0
    resume_at: float = 0.0
    starts: int = 0
    pause: float = FIRST_PAUSE
    useless: bool = False
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Fallen:
    """A worker process has ended."""

    post: Post
    code: int


@dataclass(frozen=True, slots=True)
class Signalled:
    """This process was asked to end."""


class Supervisor:
    """Keeps `count` worker processes running until it is told to end.

    Args:
        command: what starts one of them.
        count: how many.
        clock: this process's own time.
    """

    def __init__(self, command: Sequence[str], count: int, clock: Monotonic = monotonic) -> None:
        self._command = tuple(command)
        self._posts = [Post(number) for number in range(1, count + 1)]
        self._clock = clock
        self._news: SimpleQueue[Fallen | Signalled] = SimpleQueue()
        self._asked = 0
        self._status = 0

    def run(self) -> int:
        """Until all have ended; the exit code: 0 if that was in order.

        A worker that has ended otherwise gives its own code, 1 if a signal ended it; so does the
        last one to fall where none runs any more when the end is asked for. If no first worker can
        use the store, the end comes by itself.
        """
        with _signals(lambda: self._news.put(Signalled())):
            while not self._over:
                self._start_due()
                self._take_news()
        logger.info("All worker processes have ended.")
        return self._status

    @property
    def _over(self) -> bool:
        return self._asked > 0 and all(post.process is None for post in self._posts)

    def _start_due(self) -> None:
        for post in self._posts:
            if post.process is None and not self._asked and self._clock() >= post.resume_at:
                self._start(post)

    def _start(self, post: Post) -> None:
        theirs, post.orders = os.pipe()
        try:
            post.process = subprocess.Popen(  # noqa: S603 - what this very process was started with
                self._command,
                env={**os.environ, ORDERS: str(theirs), NUMBER: str(post.number)},
                pass_fds=(theirs,),
                process_group=0,  # a Ctrl-C is for the supervisor, which passes it on
            )
        except OSError as error:
            os.close(post.orders)
            self._put_off(post, f"could not be started ({error})")
            return
        finally:
            os.close(theirs)
        post.started_at, post.starts = self._clock(), post.starts + 1
        logger.info("Worker process %d is started, pid %d.", post.number, post.process.pid)
        Thread(target=self._watch, args=(post, post.process), daemon=True).start()

    def _watch(self, post: Post, process: subprocess.Popen[bytes]) -> None:
        self._news.put(Fallen(post, process.wait()))

    def _take_news(self) -> None:
        waiting = [post.resume_at for post in self._posts if post.process is None]
        timeout = max(min(waiting) - self._clock(), 0.0) if waiting and not self._asked else None
        try:
            news = self._news.get(timeout=timeout)
        except Empty:
            return
        if isinstance(news, Fallen):
            self._fallen(news.post, news.code)
        else:
            self._signalled()

    def _fallen(self, post: Post, code: int) -> None:
        lived = self._clock() - post.started_at
        os.close(post.orders)
        post.process, post.code = None, code
        early = lived < STEADY_SECONDS and (post.useless or post.starts == 1)
        post.useless = early and code == NO_STORE
        how = f"has ended {_how(code)} after {lived:.1f} s"
        if self._asked:
            logger.info("Worker process %d %s.", post.number, how)
            self._note(code)
        elif code == CANNOT_WORK and post.starts == 1:
            logger.error("Worker process %d cannot work as it was asked to; ending.", post.number)
            self._give_up(CANNOT_WORK)
        elif all(each.useless and each.process is None for each in self._posts):
            logger.error("No worker process can use the store; ending. The lines above say why.")
            self._give_up(NO_STORE)
        else:
            if lived >= STEADY_SECONDS:
                post.pause = 0.0
            self._put_off(post, how)

    def _give_up(self, status: int) -> None:
        self._status = status
        self._end()

    def _put_off(self, post: Post, how: str) -> None:
        pause = post.pause
        post.resume_at = self._clock() + pause
        post.pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        when = f"in {pause:g} s" if pause else "at once"
        logger.warning("Worker process %d %s; the next one starts %s.", post.number, how, when)

    def _signalled(self) -> None:
        running = sum(post.process is not None for post in self._posts)
        if self._asked:
            logger.warning("Hurrying %s.", _processes(running))
            self._order(HURRY)
            return
        if running:
            logger.info("Ending %s in order. A second signal hurries.", _processes(running))
        else:
            self._note_idleness()
        self._end()

    def _note_idleness(self) -> None:
        """An end for which no worker is left is in order only if all have ended in order."""
        for post in self._posts:
            self._note(1 if post.code is None else post.code)
        last = self._posts[-1].code
        how = "could not be started" if last is None else f"has ended {_how(last)}"
        logger.error("Ending, and no worker process runs: the last one %s.", how)

    def _end(self) -> None:
        self._asked += 1
        self._order(END)

    def _order(self, order: bytes) -> None:
        for post in self._posts:
            if post.process is not None:
                with suppress(OSError):  # it has just ended
                    os.write(post.orders, order)

    def _note(self, code: int) -> None:
        """A signal that ends a worker which is ending is no fault: it may not have been up yet."""
        if code > 0:
            self._status = self._status or code
        elif -code not in {0, *ENDING}:
            self._status = self._status or 1


@contextmanager
def _signals(heard: Callable[[], None]) -> Generator[None]:
    """Hear the signals that end; ignore them afterwards, when there is nothing left to end."""

    def hear(_number: int, _frame: object) -> None:
        heard()

    for number in ENDING:
        ignored = signal.getsignal(number) is signal.SIG_IGN
        if not (ignored and number == getattr(signal, "SIGHUP", None)):
            signal.signal(number, hear)
    try:
        yield
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


def _processes(count: int) -> str:
    return f"{count} worker process{'' if count == 1 else 'es'}"


def _how(code: int) -> str:
    if code >= 0:
        meaning = _MEANINGS.get(code)
        return f"with exit code {code}{f' ({meaning})' if meaning else ''}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
