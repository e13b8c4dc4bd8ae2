"""A job's arguments: one JSON object keyed by parameter name (glossary: payload)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from tidemill.codec.annotations import resolve_annotation
from tidemill.codec.json_text import Reader, read, reader_for, write
from tidemill.errors import DeclarationError, DecodingError, EncodingError

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_JOINED = msgspec.json.Encoder(order="deterministic")
_STARS: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class Arguments:
    """Encodes and decodes the arguments of one handler.

    Args:
        wire_name: names the job in errors.
        function: the handler.
        parameters: its parameters, without the context.
        injected: the names of those that are services, which no payload holds.
        ignore_unknown: whether a payload may hold parameters that the handler does not have.

    Raises:
        DeclarationError: a parameter that cannot be filled by name.
    """

    def __init__(
        self,
        wire_name: str,
        function: Callable[..., Any],
        parameters: Iterable[inspect.Parameter],
        *,
        injected: Iterable[str] = (),
        ignore_unknown: bool = False,
    ) -> None:
        self._wire_name = wire_name
        self._function = function
        self._ignore_unknown = ignore_unknown
        self._injected = frozenset(injected)
        whole = list(parameters)
        for parameter in whole:
            _require_name(parameter, wire_name)
        self._signature = inspect.Signature(whole)
        self._parameters = {each.name: each for each in whole if each.name not in self._injected}
        self._required = frozenset(
            each.name
            for each in self._parameters.values()
            if each.default is inspect.Parameter.empty
        )

    @cached_property
    def _readers(self) -> Mapping[str, Reader]:
        readers: dict[str, Reader] = {}
        for name, parameter in self._parameters.items():
            where = f"parameter {name!r} of {self._wire_name!r}"
            kind = resolve_annotation(self._function, parameter.annotation, where)
            readers[name] = reader_for(kind, where)
        return readers

    def resolve(self) -> None:
        """Resolve every annotation; costs nothing when it was done before.

        Raises:
            DeclarationError: one that cannot be found or used.
        """
        _ = self._readers

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The payload of a call. Left-out parameters stay out, so that later defaults apply.

        Each argument is read back as its annotation says before it is accepted: what a worker
        could not read is refused here, where the mistake is.

        Raises:
            TypeError: the handler cannot be called with these arguments, or one is a service.
            EncodingError: an argument cannot be written down, or is not of its declared type.
            DeclarationError: an annotation cannot be found or used.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            message = f"{self._wire_name}: {error}"
            raise TypeError(message) from None
        self._refuse_services(bound.arguments.keys())
        written = {name: self._encode_one(name, value) for name, value in bound.arguments.items()}
        return _JOINED.encode(written)

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The keyword arguments that a payload holds.

        Raises:
            DecodingError: it is no JSON object, lacks a parameter that has no default, holds one
                that the handler does not have, or an argument does not fit its annotation.
            DeclarationError: an annotation cannot be found or used.
        """
        found: dict[str, msgspec.Raw] = read(
            _OBJECT.decode, payload, f"The payload of {self._wire_name!r}"
        )
        self._check_names(found.keys())
        return {
            name: read(reader, memoryview(found[name]), self._argument(name))
            for name, reader in self._readers.items()
            if name in found
        }

    def _refuse_services(self, given: Iterable[str]) -> None:
        if passed := sorted(self._injected.intersection(given)):
            message = (
                f"{self._wire_name}: {_quoted(passed)} cannot be passed: the worker gives each "
                "attempt its services, and a payload holds none. Leave it out."
            )
            raise TypeError(message)

    def _encode_one(self, name: str, value: object) -> msgspec.Raw:
        what = self._argument(name)
        text = write(value, what)
        try:
            read(self._readers[name], text, what)
        except DecodingError as error:
            message = f"{error} A worker could not read it, so it was not enqueued."
            raise EncodingError(message) from None  # the message holds what it said
        return msgspec.Raw(text)

    def _check_names(self, found: Iterable[str]) -> None:
        if missing := sorted(self._required.difference(found)):
            message = (
                f"The payload of {self._wire_name!r} lacks {_quoted(missing)}. Give a parameter "
                "that older payloads do not have a default."
            )
            raise DecodingError(message)
        unknown = sorted(set(found).difference(self._parameters))
        if unknown and not self._ignore_unknown:
            message = (
                f"The payload of {self._wire_name!r} holds {_quoted(unknown)}, which its handler "
                'does not take. Declare the job with extra="ignore" to drop such arguments.'
            )
            raise DecodingError(message)

    def _argument(self, name: str) -> str:
        return f"Argument {name!r} of {self._wire_name!r}"


def _require_name(parameter: inspect.Parameter, wire_name: str) -> None:
    star = _STARS.get(parameter.kind)
    if star is not None:
        message = (
            f"Job {wire_name!r} takes {star}{parameter.name}, and a payload cannot say what that "
            "would hold: name every parameter."
        )
        raise DeclarationError(message)
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        message = (
            f"Parameter {parameter.name!r} of job {wire_name!r} is positional-only, and a payload "
            "is keyed by parameter name: drop the `/` from the signature."
        )
        raise DeclarationError(message)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
