"""What a handler returns, written down for those who wait for it."""

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, get_args, get_origin

from tidemill.codec.annotations import resolve_annotation
from tidemill.codec.json_text import Reader, read, reader_for, write

_AWAITED = (collections.abc.Awaitable, collections.abc.Coroutine)


class Output:
    """Encodes and decodes the return value of one handler; None is written as no output.

    What is returned is written as it is, and is not held against the annotation: the work is
    done, and a wrong annotation is no reason to do it again. It is read as the annotation says.
    """

    def __init__(self, wire_name: str, function: Callable[..., Any]) -> None:
        self._wire_name = wire_name
        self._function = function

    @cached_property
    def _reader(self) -> Reader:
        where = f"the return value of {self._wire_name!r}"
        annotation = inspect.signature(self._function).return_annotation
        kind = resolve_annotation(self._function, annotation, where)
        if get_origin(kind) in _AWAITED:
            kind = get_args(kind)[-1]
        return reader_for(kind, where)

    def resolve(self) -> None:
        """Resolve the annotation; costs nothing when it was done before.

        Raises:
            DeclarationError: it cannot be found or used.
        """
        _ = self._reader

    def encode(self, value: object) -> bytes | None:
        """What to store of a return value.

        Raises:
            EncodingError: it cannot be written down.
        """
        return None if value is None else write(value, f"The output of {self._wire_name!r}")

    def decode(self, output: bytes | None) -> Any:
        """The return value that was stored.

        Raises:
            DecodingError: it does not read as the annotation says.
            DeclarationError: the annotation cannot be found or used.
        """
        if output is None:
            return None
        return read(self._reader, output, f"The output of {self._wire_name!r}")
