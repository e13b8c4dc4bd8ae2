"""Wake-up hints: whom to call when something may be due (promise P7: never needed, only quick)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any

from tidemill.store.contract import Operation
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain, Register
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values.operators import Effect
from tidemill.values.states import JobState

_log = logging.getLogger("tidemill.store")

Wake = Callable[[], None]
_WAITING = frozenset({JobState.READY, JobState.SCHEDULED})


class Hints:
    """The wakes that are asked for, callable from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wakes: dict[object, Wake] = {}

    @property
    def watched(self) -> bool:
        return bool(self._wakes)

    def add(self, wake: Wake) -> Callable[[], None]:
        """Call `wake` with every hint; answers how to stop."""
        key = object()
        with self._lock:
            self._wakes[key] = wake

        def stop() -> None:
            with self._lock:
                self._wakes.pop(key, None)

        return stop

    def forget(self) -> None:
        """In a forked child: nobody here asked for hints, and the lock may be the parent's."""
        self._lock = Lock()
        self._wakes = {}

    def give(self) -> None:
        """Tell everyone. A wake that raises is logged: what was committed stays committed."""
        with self._lock:
            wakes = tuple(self._wakes.values())
        for wake in wakes:
            try:
                wake()
            except Exception:  # noqa: BLE001 - it is the watcher's, whatever it is
                _log.exception("A wake-up hint was not taken.")


def is_news(operation: Operation[Any], answer: Any) -> bool:
    """Whether an operation left a job to run, now or later, or asked a running one to cancel."""
    match operation:
        case Enqueue():
            return any(not (each.deduplicated or each.repeated) for each in answer)
        case Exchange():
            left = any(each.children or each.in_transaction for each in operation.outcomes)
            return left or any(each.state in _WAITING for each in answer.reported)
        case Maintain():
            return bool(answer.unheld or answer.lapsed or answer.settled)
        case Requeue() | RunNow():
            return any(each.effect is Effect.DONE for each in answer)
        case Cancel():
            return any(each.effect is Effect.REQUESTED for each in answer)
        case Rerun():
            return answer.effect is Effect.DONE
        case PauseQueue(paused=paused):
            return not paused and answer.effect is Effect.DONE
        case Register():
            return True
        case _:
            return False
