"""A daemon thread that owns one connection and does what it is handed, in order.

What is handed in as `first` is done before all that is not, in order among its like.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, Generic, Protocol, TypeVar

from tidemill.errors import StoreError

T = TypeVar("T")


class Closeable(Protocol):
    """A connection, as far as its thread is concerned."""

    def close(self) -> None:
        """Close it."""
        ...


C = TypeVar("C", bound=Closeable)


@dataclass(frozen=True, slots=True)
class Errand(Generic[C]):
    """What to do with the connection, and where the answer goes."""

    do: Callable[[C], Any]
    answer: Future[Any]


class Errands(Generic[C]):
    """Two lines of errands, and as many turns as both hold together; one more turn is the end."""

    def __init__(self) -> None:
        self._first: deque[Errand[C]] = deque()
        self._rest: deque[Errand[C]] = deque()
        self._turns: SimpleQueue[bool] = SimpleQueue()

    def put(self, errand: Errand[C], *, first: bool) -> None:
        """Hand one in, from any thread."""
        (self._first if first else self._rest).append(errand)
        self._turns.put(True)

    def end(self) -> None:
        """Say that those which were handed in before are the last."""
        self._turns.put(False)

    def take(self, timeout: float | None = None, *, block: bool = True) -> Errand[C] | None:
        """The next errand, None at the end; for one thread alone.

        Raises:
            Empty: none came in this time.
        """
        if not self._turns.get(block, timeout):
            return None
        return self._first.popleft() if self._first else self._rest.popleft()


class ConnectionThread(Generic[C]):
    """Opens its connection with the first errand, and again after an opening that failed.

    The thread holds no reference to this object or to the store, so that neither is kept alive by
    it. `idle` is called between errands, at least every `pause()` seconds where that is not None.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], C],
        pause: Callable[[], float | None] = lambda: None,
        idle: Callable[[C], None] = lambda _connection: None,
    ) -> None:
        self._errands: Errands[C] = Errands()
        self._thread = Thread(
            target=_serve, args=(self._errands, connect, pause, idle), name=name, daemon=True
        )
        self._thread.start()

    def submit(
        self, do: Callable[[C], T], answer: Future[T] | None = None, *, first: bool = False
    ) -> Future[T]:
        """Have `do` called with the connection; not at all if the future is cancelled before."""
        future: Future[T] = Future() if answer is None else answer
        self._errands.put(Errand(do, future), first=first)
        return future

    def stop(self, timeout: float) -> None:
        """Do what was handed in before, close the connection, and end."""
        self._errands.end()
        if self._thread is not current_thread():
            self._thread.join(timeout)


def _serve(
    errands: Errands[C],
    connect: Callable[[], C],
    pause: Callable[[], float | None],
    idle: Callable[[C], None],
) -> None:
    connection: C | None = None
    try:
        while True:
            try:
                errand = errands.take(pause())
                if errand is None:
                    return
                connection = _run(errand, connection, connect)
                del errand  # so that what it holds is not kept until the next one comes
            except Empty:
                pass
            if connection is not None:
                idle(connection)
    finally:
        if connection is not None:
            connection.close()
        _refuse_rest(errands)


def _run(errand: Errand[C], connection: C | None, connect: Callable[[], C]) -> C | None:
    if not errand.answer.set_running_or_notify_cancel():
        return connection  # whoever asked has given up: it must not happen behind their back
    try:
        if connection is None:
            connection = connect()
        answer = errand.do(connection)
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
        errand.answer.set_exception(error)
    else:
        errand.answer.set_result(answer)
    return connection


def _refuse_rest(errands: Errands[C]) -> None:
    while True:
        try:
            errand = errands.take(block=False)
        except Empty:
            return
        if errand is not None and errand.answer.set_running_or_notify_cancel():
            errand.answer.set_exception(StoreError("The store was closed."))
