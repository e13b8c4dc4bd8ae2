"""One value to canonical JSON and back, refusing what would change on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Never, NoReturn, cast

import msgspec

from tidemill.codec.hooks import decode_foreign, encode_foreign, is_model
from tidemill.errors import DeclarationError, DecodingError, EncodingError

Reader = Callable[[bytes], Any]
"""Decodes JSON as one type. Raises whatever msgspec or the type's own code raises."""

_ENCODER = msgspec.json.Encoder(enc_hook=encode_foreign, order="deterministic")


def write(value: object, what: str) -> bytes:
    """`value` as canonical JSON: keys and sets sorted, no white space.

    Raises:
        EncodingError: it, or something in it, cannot be written down; `what` says where.
    """
    try:
        text = _canonical(value)
        # msgspec writes a non-finite float as null, so only a text with null can hide one.
        where = _non_finite(value) if b"null" in text else None
    except Exception as error:  # the values' own code runs here, and may raise anything
        message = f"{what} cannot be written down: {_reason(error)}."
        raise EncodingError(message) from error
    if where is not None:
        message = (
            f"{what} holds a float that JSON has no word for: {where}. "
            "Send a finite number, or None, or the text of it."
        )
        raise EncodingError(message)
    return text


def read(reader: Reader, text: bytes | memoryview, what: str) -> Any:
    """The value that `text` stands for.

    Raises:
        DecodingError: it does not read as the reader's type; `what` says where.
    """
    try:
        return reader(bytes(text))
    except Exception as error:  # the types' own code runs here, and may raise anything
        message = f"{what} does not read as declared: {_reason(error)}."
        raise DecodingError(message) from error


def reader_for(kind: Any, where: str) -> Reader:
    """A reader of JSON as `kind`.

    Raises:
        DeclarationError: values of that type cannot be read back; `where` names the annotation.
    """
    try:
        decoder = msgspec.json.Decoder(_plain(kind), dec_hook=decode_foreign)
        unsupported = _unsupported(_plain(kind))
    except (TypeError, NameError, AttributeError) as error:
        raise _unusable(kind, where, str(error)) from error
    if unsupported is not None:
        raise _unusable(kind, where, f"values of {unsupported!r} cannot be read back")
    return cast("Reader", decoder.decode)


def _plain(kind: Any) -> Any:
    if kind is object:
        return Any
    if kind is Never or kind is NoReturn:
        return None
    return kind


def _unusable(kind: Any, where: str, reason: str) -> DeclarationError:
    return DeclarationError(
        f"The annotation {kind!r} of {where} cannot be used: {reason.rstrip('.')}. Use plain "
        "types, dataclasses, msgspec structs, pydantic models, datetime, UUID, Decimal, enums of "
        "all text or all int, bytes, and unions that tell their members apart."
    )


def _unsupported(kind: Any) -> type[Any] | None:
    """The first class in `kind` that msgspec leaves to the hooks and the hooks do not know."""
    # Only worker starts and first enqueues come here, so the import is not paid by others.
    import msgspec.inspect as inspection  # noqa: PLC0415 - as said above

    seen: set[int] = set()
    pending: list[object] = [inspection.type_info(kind)]
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, inspection.CustomType):
            if part.cls is not object and not is_model(part.cls):
                return part.cls
        elif isinstance(part, (inspection.Type, inspection.Field)):
            pending += _parts(part)
    return None


def _parts(part: msgspec.Struct) -> Iterable[object]:
    for name in part.__struct_fields__:
        value: object = getattr(part, name)
        yield from cast("Iterable[object]", value) if isinstance(value, tuple) else (value,)


def _canonical(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except TypeError:
        # The encoder sorts text keys only; keys of other types are made text before.
        return _ENCODER.encode(_builtins(value))


def _builtins(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=encode_foreign)


def _non_finite(value: object) -> str | None:
    """Where in `value` a float is not finite, such as `nan at $.rows[3]`; None if nowhere."""
    return _search(_builtins(value), "$")


def _search(value: object, path: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} at {path}"
    if isinstance(value, dict):
        pairs = cast("Mapping[object, object]", value)
        return _first(_search(inner, f"{path}.{key}") for key, inner in pairs.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        members = cast("Iterable[object]", value)
        return _first(_search(inner, f"{path}[{i}]") for i, inner in enumerate(members))
    return None


def _first(found: Iterable[str | None]) -> str | None:
    return next((each for each in found if each is not None), None)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"it holds a lone surrogate ({error.object[error.start]!r}), which is not text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or holds itself"
    return str(error).rstrip(".") or type(error).__qualname__
