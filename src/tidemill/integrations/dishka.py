"""dishka: `setup_dishka(container, mill)` gives the handlers of an app their services.

`Scope.APP` lasts as long as the container, `Scope.REQUEST` as long as one attempt. The container
remains the program's own, which closes it when it ends; `tidemill worker` closes it for you.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Annotated, Any, Self, get_args, get_origin

from tidemill.app import Tidemill
from tidemill.context import JobContext
from tidemill.injection import FromDishka

try:
    from dishka import AsyncContainer, Container, DependencyKey, Provider, Scope, from_context
except ModuleNotFoundError as error:
    if error.name != "dishka":
        raise
    message = (
        "tidemill.integrations.dishka needs dishka, which is not installed: "
        'pip install "tidemill[di]".'
    )
    raise ModuleNotFoundError(message, name="dishka") from error

__all__ = ["FromDishka", "TidemillProvider", "setup_dishka"]


class TidemillProvider(Provider):
    """Lets other providers depend on the `JobContext` of the attempt."""

    context = from_context(JobContext, scope=Scope.REQUEST)


def setup_dishka(container: AsyncContainer | Container, mill: Tidemill) -> None:
    """Have the attempts of an app take their services from a container, until it is given another.

    An asynchronous container serves every handler: plain ones run on a thread, and what they take
    is made and closed on the event loop around it. A synchronous container makes and closes what
    plain handlers take on the handler's own thread, and blocks the loop meanwhile for coroutines.
    """
    if isinstance(container, AsyncContainer):
        mill.use_scopes(
            lambda context: _AsyncScope(container({JobContext: context})),
            why_not=_Reasons(container).why_not,
            close=container.close,
        )
    else:
        mill.use_scopes(
            lambda context: _SyncScope(container({JobContext: context})),
            why_not=_Reasons(container).why_not,
            close=container.close,
        )


class _AsyncScope:
    """The scope of one attempt."""

    __slots__ = ("_container",)

    def __init__(self, container: AsyncContainer) -> None:
        self._container = container

    async def get(self, wanted: Any, /) -> Any:
        return await self._container.get(_key(wanted))

    async def __aenter__(self) -> Self:
        await self._container.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._container.__aexit__(kind, error, trace)
        except asyncio.CancelledError:
            # The container has closed what the cancellation hit, and not what was made before it.
            await self._container.__aexit__(kind, error, trace)
            raise
        except ExceptionGroup as errors:  # dishka's ExitError
            raise _only(errors) from error


class _SyncScope:
    """The scope of one attempt, on the thread of its handler."""

    __slots__ = ("_container",)

    def __init__(self, container: Container) -> None:
        self._container = container

    def get(self, wanted: Any, /) -> Any:
        return self._container.get(_key(wanted))

    def __enter__(self) -> Self:
        self._container.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._container.__exit__(kind, error, trace)
        except ExceptionGroup as errors:  # dishka's ExitError
            raise _only(errors) from error


class _Reasons:
    """Why the container will not give something to an attempt, as far as can be told before."""

    def __init__(self, container: AsyncContainer | Container) -> None:
        self._container = container

    def why_not(self, wanted: Any, own: bool) -> str | None:  # noqa: FBT001 - the seam's signature
        hint = _key(wanted)
        key = hint if isinstance(hint, DependencyKey) else DependencyKey(hint, "")
        if self._is_shared(key):
            return _SHARED if own else None
        if self._is_of_attempts(key):
            return None
        return (
            "which the container does not provide to an attempt. Add a provider for it, of "
            "Scope.APP or Scope.REQUEST, or name the type that is provided."
        )

    def _is_shared(self, key: DependencyKey) -> bool:
        parent: AsyncContainer | Container | None = self._container
        while parent is not None:
            if parent.registry.get_factory(key) is not None:
                return True
            parent = parent.parent_container
        return False

    def _is_of_attempts(self, key: DependencyKey) -> bool:
        """Whether it is provided between the container's scope and that of an attempt."""
        registry = self._container.registry.child_registry
        while registry is not None:
            if registry.get_factory(key) is not None:
                return True
            if not registry.scope.skip:
                break
            registry = registry.child_registry
        return False


_SHARED = (
    "which the container provides once for all attempts. Provide the class in Scope.REQUEST, so "
    "that each attempt has an object of its own; what is to be shared, inject into it."
)


def _key(wanted: Any) -> Any:
    """What the container is asked for: a type, or a type of a component."""
    if get_origin(wanted) is not Annotated:
        return wanted
    hint, *marks = get_args(wanted)
    components = [each.component for each in marks if hasattr(each, "component")]
    return DependencyKey(hint, components[0]) if components else wanted


def _only(errors: BaseExceptionGroup[Any]) -> BaseException:
    """The error itself where it is the only one: retry policies ask for its kind."""
    only: BaseException = errors.exceptions[0]
    return only if len(errors.exceptions) == 1 else errors
