"""How a process hears that its worker is to end: by signals, or from its supervisor.

The functions of the `signal` module are used and not the event loop's own. The loop's would hand
signals through a socket that forked children share, so that one sent to a handler's child would
end the worker; and it cannot stop hearing them without obeying them for a moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from tidemill.errors import WrongContext
from tidemill.shell.notices import logger

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
END: Final = b"e"
HURRY: Final = b"h"


class Endable(Protocol):
    """A worker, as far as its end is concerned. On the loop's thread."""

    @property
    def ending(self) -> bool:
        """Whether it is on its way to the end."""
        ...

    def asked_to_end(self, why: str = "") -> None:
        """End in order; `why` is said in the log, as `because ...`."""
        ...

    def asked_to_hurry(self) -> None:
        """Wait no longer for what it now waits for."""
        ...


Hearing = Callable[[Endable], Any]
"""Makes the context manager within which a worker hears that it is to end."""


@contextmanager
def hear_signals(worker: Endable, *, deaf_afterwards: bool = False) -> Generator[None]:
    """Signals end the worker, a second one hurries it.

    `deaf_afterwards` is for a process that ends with its worker: from then on it ignores signals,
    so that a late one does not spoil its exit code.

    Raises:
        WrongContext: this is not the main thread, which alone hears signals.
    """

    def asked() -> None:
        if worker.ending:
            worker.asked_to_hurry()
        else:
            worker.asked_to_end()

    with _heard(asked, deaf_afterwards=deaf_afterwards):
        yield


@contextmanager
def hear_supervisor(worker: Endable, *, orders: int) -> Generator[None]:
    """A supervisor's orders end and hurry the worker, and so does the supervisor's own end.

    Signals only end it, once: those that go to every process at once come from the supervisor too.
    `orders` is a pipe that nobody but the supervisor writes to.
    """
    loop = asyncio.get_running_loop()

    def end(why: str = "") -> None:
        if not worker.ending:
            worker.asked_to_end(why)

    def ordered() -> None:
        said = os.read(orders, 1)
        if said == HURRY and worker.ending:
            worker.asked_to_hurry()
        else:
            end("" if said else "because the supervisor is gone")
        if not said:
            loop.remove_reader(orders)

    with _heard(end, deaf_afterwards=True):
        loop.add_reader(orders, ordered)
        try:
            yield
        finally:
            loop.remove_reader(orders)


class EndedEarly(SystemExit):
    """This process was told to end before its worker had started."""


@contextmanager
def ended_early() -> Generator[Callable[[], None]]:
    """Until a worker or a supervisor hears them, signals end this process in order, and at once.

    They raise `EndedEarly`, with exit code 0, in whatever is being run. As that may swallow it, for
    instance a module that is being imported, the function that is given raises it again, to be
    called before the worker starts.

    Raises:
        WrongContext: this is not the main thread, which alone hears signals.
    """
    told = False

    def unless_told() -> None:
        if told:
            raise EndedEarly(0)

    def hear(_number: int, _frame: object) -> None:
        nonlocal told
        told = True
        unless_told()

    before = take_signals(hear)
    try:
        yield unless_told
    except EndedEarly:
        logger.info("Told to end before it had started; nothing was claimed.")
        raise
    finally:
        _overridden.remove(before)
        for number, action in before.items():
            if signal.getsignal(number) is hear:  # nobody has heard them since
                signal.signal(number, action)


@contextmanager
def _heard(asked: Callable[[], None], *, deaf_afterwards: bool) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def hear(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(asked)

    before = take_signals(hear)
    try:
        yield
    finally:
        _overridden.remove(before)
        for number, action in before.items():
            signal.signal(number, signal.SIG_IGN if deaf_afterwards else action)


def take_signals(hear: Callable[[int, object], None]) -> dict[int, Any]:
    """Have the signals that end call `hear`, in this process only; what they did before.

    Raises:
        WrongContext: this is not the main thread.
    """
    before: dict[int, Any] = {}
    for number in ENDING:
        action = signal.getsignal(number)
        if number == getattr(signal, "SIGHUP", None) and action is signal.SIG_IGN:
            continue  # started by nohup, to stay when its terminal goes
        try:
            signal.signal(number, hear)
        except ValueError as error:
            message = (
                "`run` obeys signals, which only the main thread hears; elsewhere use "
                "`async with worker`, or `await worker.start()` and `await worker.stop()`."
            )
            raise WrongContext(message) from error
        before[number] = signal.SIG_DFL if action is None else action
    _overridden.append(before)
    return before


_overridden: list[dict[int, Any]] = []
_masks: list[set[int]] = []


def _before_fork() -> None:
    """A signal to the child has to wait until it is decided what it does there."""
    if _overridden:
        _masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)))


def _after_fork_in_parent() -> None:
    if _masks:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop())


def _after_fork_in_child() -> None:
    """A forked child is no worker: signals do to it what they did before there was one."""
    for before in reversed(_overridden):
        for number, action in before.items():
            signal.signal(number, action)
    _overridden.clear()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
