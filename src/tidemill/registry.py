"""The jobs that an app knows, each under its wire name and aliases."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args, get_origin

from tidemill.codec.arguments import Arguments
from tidemill.codec.outputs import Output
from tidemill.context import JobContext
from tidemill.errors import DeclarationError
from tidemill.values.jobs import DEFAULT_PRIORITY, DEFAULT_QUEUE, PRIORITY_RANGE
from tidemill.values.retry import DEFAULT_RETRY, Retry

ExecutorKind = Literal["async", "thread"]
Extra = Literal["refuse", "ignore"]

_CONTEXT_WORD = re.compile(rf"\b{JobContext.__name__}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefaults:
    """What every job of a definition is enqueued with, unless its options say otherwise."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    retry: Retry = DEFAULT_RETRY
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobDefinition:
    """One declared job: its handler, how to run it, and how to write its values down.

    Attributes:
        executor: `async` awaits what the function returns, `thread` runs it in a thread.
        wants_context: whether the function's first parameter is the `JobContext`.
    """

    wire_name: str
    function: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    defaults: JobDefaults = field(default_factory=JobDefaults)
    executor: ExecutorKind
    wants_context: bool
    arguments: Arguments = field(repr=False)
    output: Output = field(repr=False)

    @property
    def is_async(self) -> bool:
        """Whether what the function returns is awaited."""
        return self.executor == "async"

    @property
    def names(self) -> tuple[str, ...]:
        """The wire name and the aliases."""
        return (self.wire_name, *self.aliases)

    @property
    def place(self) -> str:
        """Where the function stands, for error messages."""
        code = inspect.unwrap(self.function).__code__
        qualname = self.function.__qualname__
        return f"{self.function.__module__}.{qualname} ({code.co_filename}:{code.co_firstlineno})"

    def resolve(self) -> None:
        """Find the types that the annotations stand for; costs nothing the second time.

        Raises:
            DeclarationError: one cannot be found or used, or the context is not first.
        """
        self.arguments.resolve()
        self.output.resolve()

    def decode(self, payload: bytes) -> dict[str, object]:
        """The keyword arguments in a payload. Raises DecodingError."""
        return self.arguments.decode(payload)

    def encode_output(self, value: object) -> bytes | None:
        """What to store of a return value. Raises EncodingError."""
        return self.output.encode(value)


class Registry:
    """Finds a definition by wire name or alias. Filled at import, read by workers and clients."""

    def __init__(self) -> None:
        self._by_name: dict[str, JobDefinition] = {}

    def __iter__(self) -> Iterator[JobDefinition]:
        return iter(dict.fromkeys(self._by_name.values()))

    def add(self, definition: JobDefinition) -> None:
        """Take a definition. The same function declared again replaces the one before.

        Raises:
            DeclarationError: another function has one of its names.
        """
        replaced: set[JobDefinition] = set()
        for name in definition.names:
            known = self._by_name.get(name)
            if known is None:
                continue
            if not _same_function(known.function, definition.function):
                message = (
                    f"Wire name {name!r} is declared twice: by {known.place} and by "
                    f"{definition.place}. Give one of them another name."
                )
                raise DeclarationError(message)
            replaced.add(known)
        kept = {name: each for name, each in self._by_name.items() if each not in replaced}
        self._by_name = kept | dict.fromkeys(definition.names, definition)

    def get(self, wire_name: str) -> JobDefinition | None:
        """The definition that carries this name or alias; None if nobody does."""
        return self._by_name.get(wire_name)

    def wire_names(self) -> frozenset[str]:
        """Every name and alias."""
        return frozenset(self._by_name)


def define(
    function: Callable[..., Any],
    wire_name: str,
    *,
    aliases: tuple[str, ...] = (),
    defaults: JobDefaults | None = None,
    executor: ExecutorKind | None = None,
    extra: Extra = "refuse",
) -> JobDefinition:
    """The definition of a function as a job. Annotations are left for later.

    Raises:
        DeclarationError: the name, the function or a parameter cannot work.
    """
    for name in (wire_name, *aliases):
        _require_wire_name(name)
    if len({wire_name, *aliases}) <= len(aliases):
        message = f"Job {wire_name!r} lists a name twice in {(wire_name, *aliases)}."
        raise DeclarationError(message)
    _require_function(function, wire_name)
    defaults = defaults or JobDefaults()
    _require_priority(defaults.priority, wire_name)
    parameters = tuple(inspect.signature(function).parameters.values())
    wants_context = _context_is_first(function, parameters, wire_name)
    return JobDefinition(
        wire_name=wire_name,
        function=function,
        aliases=aliases,
        defaults=defaults,
        executor=_executor(function, executor, wire_name),
        wants_context=wants_context,
        arguments=Arguments(
            wire_name,
            function,
            parameters[1:] if wants_context else parameters,
            ignore_unknown=extra == "ignore",
        ),
        output=Output(wire_name, function),
    )


def _require_wire_name(name: str) -> None:
    if not name or not name.isprintable() or name != name.strip():
        message = (
            f"{name!r} cannot be a wire name: give it visible text without white space around "
            'it, such as "orders.capture".'
        )
        raise DeclarationError(message)


def _require_function(function: Callable[..., Any], wire_name: str) -> None:
    what = None
    if inspect.isclass(function):
        what = "a class"
    elif inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        what = "a generator function"
    elif not inspect.isfunction(function):
        what = f"a {type(function).__qualname__}"
    if what is not None:
        message = (
            f"Job {wire_name!r} is declared on {function!r}, which is {what}: "
            "a handler is a function that returns, `def` or `async def`."
        )
        raise DeclarationError(message)


def _require_priority(priority: object, wire_name: str) -> None:
    if not isinstance(priority, int):
        message = (
            f"Priority {priority!r} of job {wire_name!r} is of type {type(priority).__name__}; "
            f"give a whole number, {PRIORITY_RANGE.start} to {PRIORITY_RANGE.stop - 1}."
        )
        raise DeclarationError(message)
    if priority not in PRIORITY_RANGE:
        message = (
            f"Priority {priority} of job {wire_name!r} is outside "
            f"{PRIORITY_RANGE.start}…{PRIORITY_RANGE.stop - 1}; give one within."
        )
        raise DeclarationError(message)


def _executor(
    function: Callable[..., Any], asked: ExecutorKind | None, wire_name: str
) -> ExecutorKind:
    coroutine = inspect.iscoroutinefunction(function)
    if coroutine and asked == "thread":
        message = (
            f'Job {wire_name!r} is `async def` and asks for executor="thread": '
            "a coroutine runs on the event loop. Drop the executor, or make it a plain `def`."
        )
        raise DeclarationError(message)
    return asked or ("async" if coroutine else "thread")


def _context_is_first(
    function: Callable[..., Any], parameters: tuple[inspect.Parameter, ...], wire_name: str
) -> bool:
    for position, parameter in enumerate(parameters):
        if not _is_context(function, parameter):
            continue
        if position or parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            message = (
                f"Parameter {parameter.name!r} of job {wire_name!r} is the JobContext, which has "
                "to be the first positional parameter: move it to the front."
            )
            raise DeclarationError(message)
        return True
    return False


def _is_context(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        # Text that names the context is recognised as it stands; what text does not tell is
        # looked up only where nothing has to be imported for it.
        if _CONTEXT_WORD.search(annotation):
            return True
        scope = inspect.unwrap(function).__globals__
        return annotation.isidentifier() and scope.get(annotation) is JobContext
    if get_origin(annotation) is not None:
        return JobContext in get_args(annotation)
    return annotation is JobContext


def _same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether one is the other declared again: by a reload, a notebook, or as `__main__`."""
    if one.__qualname__ != other.__qualname__:
        return False
    modules = {one.__module__, other.__module__}
    return len(modules) == 1 or ("__main__" in modules and _file(one) == _file(other))


def _file(function: Callable[..., Any]) -> str:
    name: str = inspect.unwrap(function).__code__.co_filename
    return name
