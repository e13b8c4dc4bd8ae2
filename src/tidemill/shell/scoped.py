"""One attempt inside its scope: opened before the handler, closed when it has really ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

from tidemill.shell.attempt_notices import log_scope_fault
from tidemill.shell.endings import ending_of
from tidemill.shell.scope import (
    AsyncOpening,
    AttemptScope,
    Injection,
    OnLoop,
    Opening,
    SyncAttemptScope,
    SyncOpening,
)
from tidemill.values.endings import Ending, Stopped
from tidemill.values.jobs import Claimed

T = TypeVar("T")


class Thread(Protocol):
    """Runs a call that does not raise on a thread of handlers."""

    async def __call__(self, call: Callable[[], T], /) -> T:
        """Its answer. Cancelled only when the loop itself ends, and the call goes on then."""
        ...


@dataclass(frozen=True, slots=True)
class Tried:
    """How it ended inside the scope, and the error that the scope is closed with."""

    ending: Ending
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What a scope gave: the object whose method is called, and the services by parameter name."""

    first: tuple[Any, ...]
    services: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScopedAttempt:
    """One attempt whose handler takes something from its scope.

    Attributes:
        call: calls the handler with what the scope gave.
        returned: the ending that a handler's value makes.
    """

    job: Claimed
    injection: Injection
    call: Callable[[Given], Any]
    returned: Callable[[Any], Ending]

    async def run_coroutine(self, opening: Opening) -> Ending:
        """On the loop, whatever kind of scope it is. Raises as `in_scope` does."""
        if not isinstance(opening, AbstractAsyncContextManager):
            opening = OnLoop(opening)
        return await in_scope(opening, self.job, self._await)

    async def run_plain(self, opening: Opening, thread: Thread) -> Ending:
        """On a thread. A scope for coroutines is opened and closed on the loop around it."""
        if isinstance(opening, AbstractAsyncContextManager):
            return await in_scope(opening, self.job, lambda scope: self._around(scope, thread))
        return await thread(lambda: self._inside(opening))

    async def _await(self, scope: AttemptScope) -> Tried:
        try:
            value = await self.call(await given(scope, self.injection))
            return Tried(self.returned(value))
        except asyncio.CancelledError as error:
            return Tried(Stopped(), error)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return Tried(ending_of(error), error)

    async def _around(self, scope: AttemptScope, thread: Thread) -> Tried:
        try:
            taken = await given(scope, self.injection)
        except asyncio.CancelledError as error:
            return Tried(Stopped(), error)
        except BaseException as error:  # noqa: BLE001 - a provider's failure is the attempt's
            return Tried(ending_of(error), error)
        # Not caught: a loop that ends under a running handler leaves the scope to it.
        return await thread(lambda: self._call(lambda: taken))

    def _inside(self, opening: SyncOpening) -> Ending:
        try:
            return in_scope_sync(
                opening,
                self.job,
                lambda scope: self._call(lambda: given_sync(scope, self.injection)),
            )
        except BaseException as error:  # noqa: BLE001 - what a scope raises fails the attempt
            return ending_of(error)

    def _call(self, take: Callable[[], Given]) -> Tried:
        try:
            return Tried(self.returned(self.call(take())))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return Tried(ending_of(error), error)


async def in_scope(
    opening: AsyncOpening, job: Claimed, attempt: Callable[[AttemptScope], Awaitable[Tried]]
) -> Ending:
    """Run an attempt inside its scope. What it raises leaves the scope open.

    Raises:
        BaseException: the scope did not open, or did not close after an attempt without an error:
            a session that cannot commit makes a failure of it.
    """
    scope = await opening.__aenter__()
    tried = await attempt(scope)
    try:
        await opening.__aexit__(*_raised(tried.error))
    except BaseException as fault:  # noqa: BLE001 - a user's scope may raise anything
        _settle(job, tried, fault)
    return tried.ending


def in_scope_sync(
    opening: SyncOpening, job: Claimed, attempt: Callable[[SyncAttemptScope], Tried]
) -> Ending:
    """The same on a thread."""
    scope = opening.__enter__()
    tried = attempt(scope)
    try:
        opening.__exit__(*_raised(tried.error))
    except BaseException as fault:  # noqa: BLE001 - a user's scope may raise anything
        _settle(job, tried, fault)
    return tried.ending


async def given(scope: AttemptScope, injection: Injection) -> Given:
    """Ask the scope for everything that the handler takes, the job class first."""
    owner = injection.job_class
    first = () if owner is None else (await scope.get(owner),)
    services = {name: await scope.get(wanted) for name, wanted in injection.services.items()}
    return Given(first, services)


def given_sync(scope: SyncAttemptScope, injection: Injection) -> Given:
    """The same on a thread."""
    owner = injection.job_class
    first = () if owner is None else (scope.get(owner),)
    services = {name: scope.get(wanted) for name, wanted in injection.services.items()}
    return Given(first, services)


def _raised(
    error: BaseException | None,
) -> tuple[type[BaseException] | None, BaseException | None, TracebackType | None]:
    return (None, None, None) if error is None else (type(error), error, error.__traceback__)


def _settle(job: Claimed, tried: Tried, fault: BaseException) -> None:
    """Raise what closing raised, unless the attempt has an error of its own, which says more."""
    if tried.error is None:
        raise fault
    if fault is not tried.error:
        log_scope_fault(job, fault)
