"""A store that fails to order, around the store under test; and what it was asked meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import Final, TypeVar

from tidemill.errors import AnswerLost, StoreUnavailable
from tidemill.store.contract import Capabilities, Operation, Store, SyncChannel
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain, Register
from tidemill.values.bounds import Bounds
from tidemill.values.doctor import DatabaseHealth

R = TypeVar("R")

Fits = Callable[[object], bool]
"""Which operations are meant."""

WHY: Final = "the connection to the store was cut"
"""What every error of a faulty store says."""


class Fate(Enum):
    """What becomes of a request and its answer."""

    ANSWERED = "is answered"
    NOT_REACHED = "never reaches the store"
    ANSWER_LOST = "is performed and its answer is lost"


FAULTS: Final = (Fate.NOT_REACHED, Fate.ANSWER_LOST)


def claims(asked: object) -> bool:
    """An exchange that claims."""
    return isinstance(asked, Exchange) and asked.claim is not None


def reports(asked: object) -> bool:
    """An exchange that reports outcomes."""
    return isinstance(asked, Exchange) and bool(asked.outcomes)


def is_exchange(asked: object) -> bool:
    """An exchange, whatever it carries."""
    return isinstance(asked, Exchange)


def is_beat(asked: object) -> bool:
    """A heartbeat."""
    return isinstance(asked, Beat)


def is_registration(asked: object) -> bool:
    """A registration."""
    return isinstance(asked, Register)


def is_upkeep(asked: object) -> bool:
    """A round of maintenance."""
    return isinstance(asked, Maintain)


def of_the_heart(asked: object) -> bool:
    """What the lease hangs on: a registration or a heartbeat."""
    return is_registration(asked) or is_beat(asked)


@dataclass(frozen=True, slots=True)
class Asked:
    """One operation that a faulty store was asked for.

    Attributes:
        at: the store's time.
        answer: what the store under test answered, also where that was lost; None where it was
            never reached.
    """

    at: datetime
    operation: object
    fate: Fate
    answer: object = None


@dataclass(slots=True)
class Planned:
    """Faults to come: of the next `times` operations that fit."""

    fits: Fits
    fate: Fate
    times: float


class FaultyStore:
    """The store under test, failing as a fact has planned.

    Args:
        store: the store under test.
        now: tells the time under which what is asked is written down.
        heard: called after each operation, in the thread that performed it.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], datetime],
        heard: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._now = now
        self._heard = heard
        self._planned: list[Planned] = []
        self._lock = Lock()
        self.asked: list[Asked] = []

    def fail(self, fits: Fits, fate: Fate, times: float = 1) -> None:
        """Let this befall the next operations that fit: once, unless told otherwise."""
        self._planned.append(Planned(fits, fate, times))

    def mend(self) -> None:
        """Let no fault happen any more."""
        self._planned.clear()

    @property
    def mended(self) -> bool:
        """Whether every fault that was planned has happened."""
        return not self._planned

    def asked_for(self, fits: Fits) -> list[Asked]:
        """What it was asked for, oldest first, as far as it fits."""
        return [each for each in self.asked if fits(each.operation)]

    @property
    def capabilities(self) -> Capabilities:
        """Those of the store under test."""
        return self._store.capabilities

    @property
    def bounds(self) -> Bounds:
        """Those of the store under test."""
        return self._store.bounds

    def perform_sync(self, operation: Operation[R]) -> R:
        """Perform an operation, unless it is its fate not to be."""
        return self._through(operation, self._store.perform_sync)

    async def perform(self, operation: Operation[R]) -> R:
        """The same, awaited."""
        fate = self._fate_of(operation)
        if fate is Fate.NOT_REACHED:
            raise self._lost_on_the_way(operation)
        return self._over(operation, fate, await self._store.perform(operation))

    @contextmanager
    def dedicated(self) -> Generator[SyncChannel]:
        """A connection of its own, which fails by the same plan."""
        with self._store.dedicated() as channel:
            yield FaultyChannel(self, channel)

    def through(self, channel: SyncChannel, operation: Operation[R]) -> R:
        """Perform an operation over another connection, unless it is its fate not to be."""
        return self._through(operation, channel.perform)

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Watch the store under test."""
        return self._store.watch(wake)

    def migrate(self) -> tuple[str, ...]:
        """Migrate the store under test."""
        return self._store.migrate()

    def plan(self) -> tuple[tuple[str, str], ...]:
        """What migrating the store under test would do."""
        return self._store.plan()

    def examine(self) -> DatabaseHealth:
        """What the database of the store under test says of itself."""
        return self._store.examine()

    def looking(self) -> AbstractContextManager[SyncChannel]:
        """A channel of the store under test that only reads."""
        return self._store.looking()

    def close(self) -> None:
        """Nothing was opened here."""

    def _through(self, operation: Operation[R], perform: Callable[[Operation[R]], R]) -> R:
        fate = self._fate_of(operation)
        if fate is Fate.NOT_REACHED:
            raise self._lost_on_the_way(operation)
        return self._over(operation, fate, perform(operation))

    def _fate_of(self, operation: object) -> Fate:
        with self._lock:
            planned = next((each for each in self._planned if each.fits(operation)), None)
            if planned is None:
                return Fate.ANSWERED
            planned.times -= 1
            if planned.times <= 0:
                self._planned.remove(planned)
            return planned.fate

    def _lost_on_the_way(self, operation: object) -> StoreUnavailable:
        self._note(Asked(self._now(), operation, Fate.NOT_REACHED))
        return StoreUnavailable(WHY)

    def _over(self, operation: object, fate: Fate, answer: R) -> R:
        self._note(Asked(self._now(), operation, fate, answer))
        if fate is Fate.ANSWER_LOST:
            raise AnswerLost(WHY)
        return answer

    def _note(self, asked: Asked) -> None:
        self.asked.append(asked)
        self._heard()


@dataclass(frozen=True, slots=True)
class FaultyChannel:
    """A connection of a faulty store."""

    store: FaultyStore
    channel: SyncChannel

    def perform(self, operation: Operation[R]) -> R:
        """Perform an operation, unless it is its fate not to be."""
        return self.store.through(self.channel, operation)
