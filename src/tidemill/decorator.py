"""What `@mill.job(…)` makes of a function: a handle that can still be called like it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tidemill.bound import Home
from tidemill.context import JobContext
from tidemill.jobs import JobHandle
from tidemill.options import JobOptions
from tidemill.registry import JobDefinition

P = ParamSpec("P")
R = TypeVar("R")


class AsyncContextJob(JobHandle[P, R]):
    """Declared on `async def f(context, …)`; calling it calls the function."""

    def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the function here and now, without any job."""
        called: Awaitable[R] = self.function(context, *args, **kwargs)
        return called


class AsyncJob(JobHandle[P, R]):
    """Declared on `async def f(…)`; calling it calls the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the function here and now, without any job."""
        called: Awaitable[R] = self.function(*args, **kwargs)
        return called


class PlainContextJob(JobHandle[P, R]):
    """Declared on `def f(context, …)`; calling it calls the function."""

    def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, without any job."""
        returned: R = self.function(context, *args, **kwargs)
        return returned


class PlainJob(JobHandle[P, R]):
    """Declared on `def f(…)`; calling it calls the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, without any job."""
        returned: R = self.function(*args, **kwargs)
        return returned


class FunctionJob(Protocol):
    """The decorator: turns a function into a handle that keeps its parameters and result.

    The overloads overlap on purpose: the first that fits is the most special one.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload] - as said above
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]], /
    ) -> AsyncContextJob[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap] # as said above
        self, function: Callable[P, Awaitable[R]], /
    ) -> AsyncJob[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], R], /
    ) -> PlainContextJob[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainJob[P, R]: ...


def handle_for(
    definition: JobDefinition, home: Home, options: JobOptions | None = None
) -> JobHandle[..., Any]:
    """The handle of the kind that the definition's function is."""
    kinds: dict[tuple[bool, bool], type[JobHandle[..., Any]]] = {
        (True, True): AsyncContextJob,
        (True, False): AsyncJob,
        (False, True): PlainContextJob,
        (False, False): PlainJob,
    }
    return kinds[definition.is_async, definition.wants_context](definition, home, options)
