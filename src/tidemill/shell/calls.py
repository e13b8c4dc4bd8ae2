"""The node's calls to the store: each ends in exactly one event, whatever happens."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TypeVar

from tidemill.core.commands import DoExchange, DoTakeNotes
from tidemill.core.events import (
    ExchangeAnswered,
    ExchangeFailed,
    MaintainAnswered,
    NotesAnswered,
    NotesFailed,
)
from tidemill.errors import AnswerLost, StoreError
from tidemill.shell.monotonic import Monotonic
from tidemill.shell.notices import logger
from tidemill.shell.store_time import StoreTime
from tidemill.store.contract import Operation, Store
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain
from tidemill.store.notes import TakeNotes

R = TypeVar("R")


class StoreCalls:
    """Performs what the node asks for, within the delivery time-out."""

    def __init__(
        self,
        store: Store,
        lease: timedelta,
        delivery_timeout: timedelta,
        clock: Monotonic,
        store_time: StoreTime,
    ) -> None:
        """Take the store and the bounds of a call."""
        self._store = store
        self._lease = lease
        self._timeout = delivery_timeout.total_seconds()
        self._clock = clock
        self._store_time = store_time

    async def exchange(self, command: DoExchange) -> ExchangeAnswered | ExchangeFailed:
        """Report and claim."""
        operation = Exchange(
            worker=command.worker,
            outcomes=command.outcomes,
            claim=command.claim,
            list_running=command.list_running,
        )
        try:
            reply = await self._perform(operation)
        except AnswerLost as error:
            return ExchangeFailed(self._clock(), refused=False, unknown=True, why=str(error))
        except StoreError as error:
            return ExchangeFailed(self._clock(), refused=False, unknown=False, why=str(error))
        except Exception as error:  # noqa: BLE001 - the node takes a refused request apart
            logger.exception("The store refused an exchange.")
            why = f"{type(error).__name__}: {error}"
            return ExchangeFailed(self._clock(), refused=True, unknown=False, why=why)
        self._store_time.hear(reply.now)
        return ExchangeAnswered(self._clock(), reply)

    async def take_notes(self, command: DoTakeNotes) -> NotesAnswered | NotesFailed:
        """Have notes written down. What was not is sent again, or goes with an outcome."""
        try:
            answers = await self._perform(TakeNotes(worker=command.worker, notes=command.notes))
        except StoreError as error:
            logger.debug("What running attempts said had no answer: %s", error)
            return NotesFailed(self._clock(), refused=False)
        except Exception:  # noqa: BLE001 - notes must not end the worker
            logger.exception("The store refused what running attempts said.")
            return NotesFailed(self._clock(), refused=True)
        return NotesAnswered(self._clock(), answers)

    async def maintain(self) -> MaintainAnswered:
        """One round of upkeep. A failed one is only logged: the next comes soon."""
        try:
            reply = await self._perform(Maintain(lease=self._lease))
        except StoreError as error:
            logger.debug("A round of maintenance had no answer: %s", error)
            return MaintainAnswered(self._clock(), None)
        except Exception:  # noqa: BLE001 - upkeep must not end the worker; any other node does it too
            logger.exception("A round of maintenance failed.")
            return MaintainAnswered(self._clock(), None)
        return MaintainAnswered(self._clock(), reply)

    async def _perform(self, operation: Operation[R]) -> R:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._store.perform(operation)
        except TimeoutError as error:
            message = f"no answer within the delivery time-out of {self._timeout:g} s"
            raise AnswerLost(message) from error
        except asyncio.CancelledError as error:
            if _asked_to_stop():
                raise
            message = "the store gave the call up"
            raise AnswerLost(message) from error


def _asked_to_stop() -> bool:
    running = asyncio.current_task()
    return running is None or running.cancelling() > 0
