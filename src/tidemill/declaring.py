"""Declaring jobs: the decorators that an app and a group have in common, and the group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Never, cast

from tidemill.bound import Home
from tidemill.client import Client
from tidemill.decorator import FunctionJob, handle_for
from tidemill.defining import define
from tidemill.errors import ConfigurationError, DeclarationError
from tidemill.jobs import JobHandle
from tidemill.methods import MethodDecorator, method_for
from tidemill.registry import (
    ExecutorKind,
    Extra,
    JobDefaults,
    JobDefinition,
    Registry,
)
from tidemill.values.durations import Duration, duration
from tidemill.values.jobs import DEFAULT_PRIORITY, DEFAULT_QUEUE
from tidemill.values.retry import DEFAULT_RETRY, Retry


class Declares(ABC):
    """What an app and a group have in common: the decorators."""

    def job(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry = DEFAULT_RETRY,
        timeout: Duration | None = None,
        aliases: Iterable[str] = (),
        extra: Extra = "refuse",
        executor: ExecutorKind | None = None,
        **misplaced: Never,
    ) -> FunctionJob:
        """Declare the decorated function as a job.

        Args:
            wire_name: the stored identity of the job type; renaming the function keeps it.
            queue: the stream its jobs are put into.
            priority: higher is claimed first, -32768 to 32767.
            retry: what happens after an attempt that did not succeed.
            timeout: how long one attempt may run; None for ever.
            aliases: whole wire names of old rows that this job runs too.
            extra: what to do with stored parameters that the function does not take: `refuse`
                quarantines the job, `ignore` drops them.
            executor: `async` awaits what the function returns, `thread` runs it in a thread; by
                default `async def` and `def` decide. `process` runs either in a process, which
                another handler cannot hinder and which is killed if the attempt does not stop; the
                app and the function have to stand at the top level of a module.
            misplaced: nothing; an option of `with_options` is refused with where it belongs.

        Raises:
            DeclarationError: the name is missing, taken or empty, the function cannot be a job, or
                an option belongs to one enqueue.
            TypeError: an option that does not exist.
        """
        _refuse_misplaced("job", misplaced)
        declaration = _Declaration(
            _require_text(wire_name, "job"), queue, priority, retry, timeout, tuple(aliases), extra,
            executor,
        )  # fmt: skip
        return cast("FunctionJob", self._decorator(declaration))

    def job_method(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry = DEFAULT_RETRY,
        timeout: Duration | None = None,
        aliases: Iterable[str] = (),
        extra: Extra = "refuse",
        executor: ExecutorKind | None = None,
        **misplaced: Never,
    ) -> MethodDecorator:
        """Declare the decorated method as a job; its class is resolved anew for every attempt.

        The class is asked of the attempt's scope, as the container provides it, and the method is
        called on what that gives. The job is enqueued by way of the class, as in
        `Payments.capture.enqueue("p-1")`. All else is as for `job`.

        Raises:
            DeclarationError: as `job`, or what is decorated stands in no class.
            TypeError: an option that does not exist.
        """
        _refuse_misplaced("job_method", misplaced)
        declaration = _Declaration(
            _require_text(wire_name, "job_method"), queue, priority, retry, timeout, tuple(aliases),
            extra, executor, method=True,
        )  # fmt: skip
        return cast("MethodDecorator", self._decorator(declaration))

    def _decorator(self, declaration: _Declaration) -> Callable[[Callable[..., Any]], Any]:
        declaration.defaults()  # what cannot work is refused where it is written

        def declare(function: Callable[..., Any]) -> Any:
            definition = declaration.define(function, self._wire_name(declaration.wire_name))
            self._register(definition)
            make = handle_for if definition.job_class is None else method_for
            return make(definition, self._home())

        return declare

    def _wire_name(self, name: str) -> str:
        return name

    @abstractmethod
    def _register(self, definition: JobDefinition) -> None: ...

    @abstractmethod
    def _home(self) -> Home: ...


@dataclass(frozen=True, slots=True)
class _Declaration:
    """What was given to a decorator."""

    wire_name: str
    queue: str
    priority: int
    retry: Retry
    timeout: Duration | None
    aliases: tuple[str, ...]
    extra: Extra
    executor: ExecutorKind | None
    method: bool = False

    def defaults(self) -> JobDefaults:
        timeout = self.timeout
        return JobDefaults(
            queue=self.queue,
            priority=self.priority,
            retry=self.retry,
            timeout=None
            if timeout is None
            else duration(timeout, f"timeout of {self.wire_name!r}"),
        )

    def define(self, function: Callable[..., Any], wire_name: str) -> JobDefinition:
        _refuse_job(function, wire_name)
        return define(
            function,
            wire_name,
            aliases=self.aliases,
            defaults=self.defaults(),
            executor=self.executor,
            extra=self.extra,
            method=self.method,
        )


class JobGroup(Declares):
    """Jobs that are declared before, or apart from, the app that includes them.

    Args:
        prefix: stands before every wire name of the group. Aliases are whole names.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._own = Registry()
        self._app: Home | None = None
        self._registry: Registry | None = None

    @property
    def client(self) -> Client:
        """The client of the app that includes the group.

        Raises:
            ConfigurationError: no app does.
        """
        if self._app is None:
            message = (
                f"The jobs of the group {self.prefix!r} have no app yet: call mill.include(group)."
            )
            raise ConfigurationError(message)
        return self._app.client

    def join(self, app: Home, registry: Registry) -> None:
        """Belong to an app; `mill.include(group)` calls this.

        Raises:
            DeclarationError: a wire name is taken, or the group belongs to another app.
        """
        if self._app not in (None, app):
            message = f"The group {self.prefix!r} is already included in another app."
            raise DeclarationError(message)
        for definition in self._own:
            registry.add(definition)
        self._app, self._registry = app, registry

    def _wire_name(self, name: str) -> str:
        return self.prefix + name if name else name

    def _register(self, definition: JobDefinition) -> None:
        self._own.add(definition)
        if self._registry is not None:
            self._registry.add(definition)

    def _home(self) -> Home:
        return self


def _require_text(wire_name: object, decorator: str) -> str:
    if isinstance(wire_name, str):
        return wire_name
    name = getattr(wire_name, "__name__", "the function") if callable(wire_name) else None
    where = f" above {name}" if name else ""
    message = (
        f"A job needs a wire name, the text that its rows are stored under, and was given "
        f'{wire_name!r}: write @mill.{decorator}("wire.name"){where}.'
    )
    raise DeclarationError(message)


def _refuse_misplaced(decorator: str, misplaced: Mapping[str, object]) -> None:
    handle: Any = JobHandle
    for name in misplaced:
        if name in signature(handle.with_options).parameters:
            message = (
                f"`{name}` belongs to one enqueue, not to the declaration: "
                f"`with_options({name}=…)` on the job, where it is enqueued."
            )
            raise DeclarationError(message)
        message = f"{decorator}() has no option {name!r}."
        raise TypeError(message)


def _refuse_job(function: object, wire_name: str) -> None:
    if isinstance(function, JobHandle):
        message = (
            f"{function.function.__qualname__} is a job already, {function.wire_name!r}, and "
            f"cannot be declared as {wire_name!r} too. To let it run rows of that name, declare "
            f"it once, with aliases=[{wire_name!r}]."
        )
        raise DeclarationError(message)
