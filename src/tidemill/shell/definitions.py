"""What the shell must know about a job in order to run it. The registry above provides it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from tidemill.shell.cancellation import Cancellation
from tidemill.shell.scope import Injection
from tidemill.shell.talk import AttemptTalk
from tidemill.values.jobs import Claimed
from tidemill.values.tags import Tag


class JobDefinition(Protocol):
    """How to run the jobs of one wire name."""

    @property
    def function(self) -> Callable[..., object]:
        """The user's handler."""
        ...

    @property
    def wants_context(self) -> bool:
        """Whether the handler's first parameter is the context."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function; otherwise it runs in a thread."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether the handler runs in a process of its own."""
        ...

    @property
    def injection(self) -> Injection | None:
        """What the handler takes from its attempt's scope; None if it needs none."""
        ...

    def decode(self, payload: bytes) -> dict[str, object]:
        """The arguments, by parameter name. Raises DecodingError."""
        ...

    def encode_output(self, value: object) -> bytes | None:
        """What the handler returned, encoded. Raises EncodingError."""
        ...

    def resolve(self) -> None:
        """Read the handler's annotations. Raises DeclarationError."""
        ...


class Definitions(Protocol):
    """The jobs a worker knows."""

    def get(self, wire_name: str) -> JobDefinition | None:
        """The definition that carries this name or alias."""
        ...

    def wire_names(self) -> frozenset[str]:
        """Every name and alias."""
        ...


class HandlerContext(Protocol):
    """What the shell reads from a handler's context when the handler has ended."""

    @property
    def tags(self) -> frozenset[Tag]:
        """The tags that the handler added."""
        ...


ContextFactory = Callable[
    [Claimed, Cancellation, Callable[[], datetime], AttemptTalk], HandlerContext
]
"""Makes an attempt's context: from its job, its cancellation, the store's time, and what it tells
its worker by."""
