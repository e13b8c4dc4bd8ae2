"""Joining a store to a transaction of the user's: what is performed, commits or not with the rest.

Nothing is begun, committed, rolled back or tried again here (clause F4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tidemill.bridges.kinds import Kind, kind_of
from tidemill.bridges.turns import turn, turn_async
from tidemill.errors import TransactionRefused
from tidemill.store.contract import Operation, Store

if TYPE_CHECKING:
    from tidemill.drivers.footing import Footing, Lends

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Joined:
    """A store in a sync transaction."""

    _perform: Callable[[Operation[Any]], Any]

    def perform(self, operation: Operation[R]) -> R:
        """Perform one operation in the transaction, once.

        Raises:
            TransactionRefused: the transaction cannot carry it; nothing was written.
            LockNotGranted: another transaction held a lock for too long.
            SchemaError: the store's tables are not in the transaction's database.
            Refused: the store cannot hold what it asks for; nothing was written.
            Exception: the driver's own error, where none of these says more.
        """
        return cast("R", self._perform(operation))


@dataclass(frozen=True, slots=True)
class AsyncJoined:
    """A store in an async transaction."""

    _perform: Callable[[Operation[Any]], Awaitable[Any]]

    async def perform(self, operation: Operation[R]) -> R:
        """As `Joined.perform`, awaited."""
        return cast("R", await self._perform(operation))


def join(store: Store, tx: object, *, lock_wait: timedelta | None = None) -> Joined | AsyncJoined:
    """Join a store to a transaction of the user's, as sync or async as that is.

    A store that does not persist, such as the one of a test, is in no transaction: with it an
    operation is performed at once, whatever becomes of the transaction.

    Args:
        store: the store.
        tx: the transaction: a connection or a session of a kind that `kinds` knows.
        lock_wait: how long one statement may wait for a lock; as long as the store's own by
            default. Where the transaction has a tighter bound, that holds.

    Raises:
        TransactionRefused: `tx` is of no kind that is known, or the store takes part in none.
    """
    kind = kind_of(tx)
    capabilities = store.capabilities
    if capabilities.bridges:
        return _bridged(cast("Lends", store).footing(), kind, tx, lock_wait)
    if capabilities.persistent:
        message = (
            f"A store on {capabilities.name} cannot take part in a transaction of yours; nothing "
            "was written. Enqueue after the transaction has committed, without it; a handler's job "
            "is completed when the handler returns."
        )
        raise TransactionRefused(message)
    return AsyncJoined(store.perform) if kind.awaited else Joined(store.perform_sync)


def _bridged(
    footing: Footing, kind: Kind, tx: object, lock_wait: timedelta | None
) -> Joined | AsyncJoined:
    # Imported here, so that only what the application uses is loaded, and only once it does.
    from tidemill.bridges.course import course_of  # noqa: PLC0415 - see above

    bridge: Any = import_module(f"tidemill.bridges.{kind.module}")
    wait = footing.lock_wait if lock_wait is None else lock_wait

    def perform(operation: Operation[Any]) -> Any:
        with turn(tx):
            return bridge.run(tx, footing, course_of(operation, footing, wait))

    async def perform_async(operation: Operation[Any]) -> Any:
        async with turn_async(tx):
            return await bridge.run_async(tx, footing, course_of(operation, footing, wait))

    return AsyncJoined(perform_async) if kind.awaited else Joined(perform)
