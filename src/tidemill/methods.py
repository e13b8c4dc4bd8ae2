"""What `@mill.job_method(…)` makes of a method: on the class a handle, on an instance a method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from tidemill.bound import Home
from tidemill.context import JobContext
from tidemill.decorator import (
    AsyncContextJob,
    AsyncJob,
    PlainContextJob,
    PlainJob,
    handle_for,
)
from tidemill.jobs import JobHandle
from tidemill.registry import JobDefinition
from tidemill.shell.job_class import JobClass

P = ParamSpec("P")
R = TypeVar("R")
B_co = TypeVar("B_co", covariant=True)


class MethodJob(JobHandle[P, R], Generic[P, R, B_co]):
    """A job that is a method. Its class is asked of the attempt's scope, once per attempt."""

    @property
    def function(self) -> Callable[..., Any]:
        """The declared method, as it was: it takes the instance first."""
        return self._job_class.function

    def __set_name__(self, owner: type, name: str) -> None:
        self._job_class.take_in(owner, name)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None, /) -> B_co: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        """On the class the handle; on an instance the method, which is called as ever."""
        if instance is None:
            return self
        method = MethodType(self.function, instance)
        return handle_for(replace(self._definition, function=method), self._home, self._options)

    @property
    def _job_class(self) -> JobClass:
        found = self._definition.job_class
        assert found is not None, "declared with job_method"
        return found


class AsyncContextMethod(MethodJob[P, R, AsyncContextJob[P, R]]):
    """Declared on `async def f(self, context, …)`."""

    def __call__(
        self, instance: Any, context: JobContext, /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]:
        """Call the method of an instance here and now, without any job."""
        called: Awaitable[R] = self.function(instance, context, *args, **kwargs)
        return called


class AsyncMethod(MethodJob[P, R, AsyncJob[P, R]]):
    """Declared on `async def f(self, …)`."""

    def __call__(self, instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the method of an instance here and now, without any job."""
        called: Awaitable[R] = self.function(instance, *args, **kwargs)
        return called


class PlainContextMethod(MethodJob[P, R, PlainContextJob[P, R]]):
    """Declared on `def f(self, context, …)`."""

    def __call__(
        self, instance: Any, context: JobContext, /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Call the method of an instance here and now, without any job."""
        returned: R = self.function(instance, context, *args, **kwargs)
        return returned


class PlainMethod(MethodJob[P, R, PlainJob[P, R]]):
    """Declared on `def f(self, …)`."""

    def __call__(self, instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method of an instance here and now, without any job."""
        returned: R = self.function(instance, *args, **kwargs)
        return returned


class MethodDecorator(Protocol):
    """The decorator: turns a method into a handle that keeps its parameters and result.

    The overloads overlap on purpose: the first that fits is the most special one.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload] - as said above
        self, function: Callable[Concatenate[Any, JobContext, P], Awaitable[R]], /
    ) -> AsyncContextMethod[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap] # as said above
        self, function: Callable[Concatenate[Any, P], Awaitable[R]], /
    ) -> AsyncMethod[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, JobContext, P], R], /
    ) -> PlainContextMethod[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> PlainMethod[P, R]: ...


def method_for(definition: JobDefinition, home: Home) -> JobHandle[..., Any]:
    """The handle of the kind that the definition's method is."""
    kinds: dict[tuple[bool, bool], type[MethodJob[..., Any, Any]]] = {
        (True, True): AsyncContextMethod,
        (True, False): AsyncMethod,
        (False, True): PlainContextMethod,
        (False, False): PlainMethod,
    }
    return kinds[definition.is_async, definition.wants_context](definition, home)
