"""What msgspec does not know: pydantic models, and `object` as a word for anything.

Models are recognised by the methods they have, so nothing is imported for them.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec


@runtime_checkable
class _Model(Protocol):
    """A pydantic model, as far as the codec is concerned."""

    def model_dump(self, *, mode: str, by_alias: bool) -> Any: ...

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Any: ...


def is_model(kind: object) -> bool:
    """Whether this class has the methods of a pydantic model."""
    return isinstance(kind, type) and issubclass(kind, _Model)


def encode_foreign(value: Any) -> Any:
    """For msgspec's `enc_hook`: a model as what its JSON form consists of."""
    if isinstance(value, _Model):
        return value.model_dump(mode="json", by_alias=True)
    message = f"values of type {type(value).__qualname__} cannot be written down"
    raise NotImplementedError(message)


def decode_foreign(kind: type[Any], value: Any) -> Any:
    """For msgspec's `dec_hook`: a model validated from its JSON form."""
    if kind is object:
        return value
    if issubclass(kind, _Model):
        return kind.model_validate_json(msgspec.json.encode(value))
    message = f"values of type {kind.__qualname__} cannot be read back"
    raise NotImplementedError(message)
