"""A daemon thread that owns one connection and does what it is handed, in order."""

from __future__ import annotations

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
        self._errands: SimpleQueue[Errand[C] | None] = SimpleQueue()
        self._thread = Thread(
            target=_serve, args=(self._errands, connect, pause, idle), name=name, daemon=True
        )
        self._thread.start()

    def submit(self, do: Callable[[C], T], answer: Future[T] | None = None) -> Future[T]:
        """Have `do` called with the connection; not at all if the future is cancelled before."""
        future: Future[T] = Future() if answer is None else answer
        self._errands.put(Errand(do, future))
        return future

    def stop(self, timeout: float) -> None:
        """Do what was handed in before, close the connection, and end."""
        self._errands.put(None)
        if self._thread is not current_thread():
            self._thread.join(timeout)


def _serve(
    errands: SimpleQueue[Errand[C] | None],
    connect: Callable[[], C],
    pause: Callable[[], float | None],
    idle: Callable[[C], None],
) -> None:
    connection: C | None = None
    try:
        while True:
            try:
                errand = errands.get(timeout=pause())
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


def _refuse_rest(errands: SimpleQueue[Errand[C] | None]) -> None:
    while True:
        try:
            errand = errands.get_nowait()
        except Empty:
            return
        if errand is not None and errand.answer.set_running_or_notify_cancel():
            errand.answer.set_exception(StoreError("The store was closed."))
