"""The seam to dependency injection: what one attempt is given, from its start to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from tidemill.errors import DeclarationError

if TYPE_CHECKING:
    from tidemill.shell.definitions import Definitions, JobDefinition


class AttemptScope(Protocol):
    """What a coroutine asks for the services of its attempt."""

    async def get(self, wanted: Any, /) -> Any:
        """The service of a type: the same one all through the attempt, or as the scope decides."""
        ...


class SyncAttemptScope(Protocol):
    """The same for threads: opened, asked and closed on the thread of a plain handler."""

    def get(self, wanted: Any, /) -> Any:
        """The service of a type."""
        ...


AsyncOpening = AbstractAsyncContextManager[AttemptScope, bool | None]
SyncOpening = AbstractContextManager[SyncAttemptScope, bool | None]
Opening = AsyncOpening | SyncOpening
"""A scope that is still to be entered. It is left with the error of the attempt, if it had one."""

WhyNot = Callable[[Any, bool], str | None]
"""Why a scope will not give a type, None if it will; the flag forbids one that attempts share."""


Close = Callable[[], Awaitable[object] | None]
"""Closes what the scopes of attempts come from, at the end of a process that is a worker."""


class Injection(Protocol):
    """What a handler takes from the scope of its attempt."""

    @property
    def services(self) -> Mapping[str, Any]:
        """The types it is given, by parameter name. Raises DeclarationError."""
        ...

    @property
    def job_class(self) -> type | None:
        """The class whose method it is; None for a function. Raises DeclarationError."""
        ...


@dataclass(frozen=True, slots=True)
class Scopes:
    """Where the scopes of attempts come from.

    Attributes:
        open: makes the scope of an attempt from its context, called on the event loop.
        why_not: asked when a worker starts; None where only the attempt will tell.
        close: closes it at the end of `tidemill worker`; None if nothing is to be closed.
    """

    open: Callable[[Any], Opening]
    why_not: WhyNot | None = None
    close: Close | None = None


def prepare_jobs(definitions: Definitions, scopes: Scopes | None) -> None:
    """Resolve what every job declares, and see that scopes can give what it takes from them.

    Raises:
        DeclarationError: a job that cannot run.
    """
    for wire_name in sorted(definitions.wire_names()):
        definition = definitions.get(wire_name)
        if definition is None:
            continue
        definition.resolve()
        if definition.injection is not None:
            _refuse_missing(wire_name, definition.injection, scopes)


def scopes_for(definition: JobDefinition, scopes: Scopes | None) -> Scopes:
    """The scopes that a job with an injection needs.

    Raises:
        DeclarationError: the app has none.
    """
    if scopes is None:
        name = getattr(definition.function, "__qualname__", "it")
        raise DeclarationError(_without_scopes(f"{name} is a job that takes services"))
    return scopes


class OnLoop:
    """A scope for threads, used by a coroutine: its calls block the event loop meanwhile."""

    def __init__(self, opening: SyncOpening) -> None:
        """Enter nothing yet."""
        self._opening = opening
        self._scope: SyncAttemptScope | None = None

    async def get(self, wanted: Any, /) -> Any:
        assert self._scope is not None, "asked before it was entered"
        return self._scope.get(wanted)

    async def __aenter__(self) -> AttemptScope:
        self._scope = self._opening.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opening.__exit__(kind, error, trace)


def _refuse_missing(wire_name: str, injection: Injection, scopes: Scopes | None) -> None:
    wishes = [
        (f"its parameter {name!r}", wanted, False) for name, wanted in injection.services.items()
    ]
    if injection.job_class is not None:
        wishes.insert(0, ("it is a method, and", injection.job_class, True))
    for who, wanted, own in wishes:
        if scopes is None:
            what = f"Job {wire_name!r} cannot run: {who} wants {shown(wanted)}"
            raise DeclarationError(_without_scopes(what))
        why = None if scopes.why_not is None else scopes.why_not(wanted, own)
        if why is not None:
            message = f"Job {wire_name!r} cannot run: {who} wants {shown(wanted)}, {why}"
            raise DeclarationError(message)


def shown(wanted: Any) -> str:
    """A type as a person writes it."""
    return f"{wanted.__module__}.{wanted.__qualname__}" if isinstance(wanted, type) else str(wanted)


def _without_scopes(what: str) -> str:
    return (
        f"{what}, and the app has nowhere to take it from. Call setup_dishka(container, mill), "
        'from tidemill.integrations.dishka (pip install "tidemill[di]"), or '
        "mill.use_scopes(...) with a factory of your own."
    )
