"""The class that a job's method belongs to, known only once its body has been read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tidemill.errors import DeclarationError


class JobClass:
    """Told by the decorated method where it has come to stand.

    Attributes:
        function: the decorated method, as it was.
        handler: what a worker calls, with an instance first: the method of that name which the
            instance's own class has, so that a subclass may override it.
    """

    def __init__(self, function: Callable[..., Any], wire_name: str) -> None:
        """Know no class yet."""
        self.function = function
        self._wire_name = wire_name
        self._owner: type | None = None
        self._name = function.__name__
        self.handler = self._handler()

    @property
    def owner(self) -> type:
        """The class.

        Raises:
            DeclarationError: no class has taken the method in.
        """
        if self._owner is None:
            message = (
                f"Job {self._wire_name!r} is declared on {self.function.__qualname__}, which no "
                "class has taken in. Write @mill.job_method(…) right above a method in the body "
                "of its class, and above every other decorator."
            )
            raise DeclarationError(message)
        return self._owner

    def take_in(self, owner: type, name: str) -> None:
        """Be an attribute of a class. The first one counts, and what is made anew in its place.

        A dataclass with slots, for one, is another class than the one that its body made.
        """
        before = self._owner
        if before is None or (before.__module__, before.__name__) == (
            owner.__module__,
            owner.__name__,
        ):
            self._owner, self._name = owner, name

    def _handler(self) -> Callable[..., Any]:
        function = self.function

        @wraps(function)
        def handler(instance: object, /, *args: Any, **kwargs: Any) -> Any:
            found = getattr(type(instance), self._name, function)
            plain = getattr(found, "function", found)  # a job handle carries its function
            return plain(instance, *args, **kwargs)

        return handler
