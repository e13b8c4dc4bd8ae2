"""The jobs that an app knows, each under its wire name and aliases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from tidemill.codec.arguments import Arguments
from tidemill.codec.outputs import Output
from tidemill.errors import DeclarationError
from tidemill.injection import Injection
from tidemill.shell.job_class import JobClass
from tidemill.values.jobs import DEFAULT_PRIORITY, DEFAULT_QUEUE
from tidemill.values.retry import DEFAULT_RETRY, Retry

ExecutorKind = Literal["async", "thread", "process"]
Extra = Literal["refuse", "ignore"]


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
        in_process: whether that happens in a process of its own.
        wants_context: whether the function's first parameter is the `JobContext`.
        injection: what the function takes from its attempt's scope; None if it needs none.
        job_class: the class whose method the function is; None for a plain function.
    """

    wire_name: str
    function: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    defaults: JobDefaults = field(default_factory=JobDefaults)
    executor: Literal["async", "thread"]
    in_process: bool = False
    wants_context: bool
    injection: Injection | None = None
    job_class: JobClass | None = None
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
        if self.injection is not None:
            self.injection.resolve()

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


def _same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether one is the other declared again: by a reload, a notebook, or as `__main__`."""
    if one.__qualname__ != other.__qualname__:
        return False
    modules = {one.__module__, other.__module__}
    return len(modules) == 1 or ("__main__" in modules and _file(one) == _file(other))


def _file(function: Callable[..., Any]) -> str:
    name: str = inspect.unwrap(function).__code__.co_filename
    return name
