"""From types to their JSON form, as msgspec reads and writes them.

msgspec has a generator of JSON schemas, but it describes a `datetime` and a `str` alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any, cast

import msgspec.inspect as inspection
from msgspec import UNSET

from tidemill.codec.hooks import is_model
from tidemill.testing.schemas import REFERENCE, Schema, Types

_SCALARS: dict[type[inspection.Type], Schema] = {
    inspection.AnyType: {},
    inspection.RawType: {},
    inspection.NoneType: {"type": "null"},
    inspection.BoolType: {"type": "boolean"},
    inspection.IntType: {"type": "integer"},
    inspection.FloatType: {"type": "number"},
    inspection.StrType: {"type": "string"},
    inspection.BytesType: {"type": "string", "format": "base64"},
    inspection.ByteArrayType: {"type": "string", "format": "base64"},
    inspection.MemoryViewType: {"type": "string", "format": "base64"},
    inspection.DateTimeType: {"type": "string", "format": "date-time"},
    inspection.DateType: {"type": "string", "format": "date"},
    inspection.TimeType: {"type": "string", "format": "time"},
    inspection.TimeDeltaType: {"type": "string", "format": "duration"},
    inspection.UUIDType: {"type": "string", "format": "uuid"},
    inspection.DecimalType: {"type": "string", "format": "decimal"},
}
_NOISE = frozenset({"title", "description", "default", "examples", "$defs"})
_NAMED = "properties"
"""The keyword whose value maps names to schemas."""

_order = partial(json.dumps, sort_keys=True)


def schemas_of(kinds: Iterable[Any]) -> tuple[list[Schema], Types]:
    """The schema of each type, and the named ones they refer to, by name."""
    forms = _Forms()
    schemas = [forms.of(inspection.type_info(kind)) for kind in kinds]
    return schemas, dict(sorted(forms.types.items()))


class _Forms:
    """The forms of some types; classes with fields are named, so that they may hold themselves."""

    def __init__(self) -> None:
        self.types: Types = {}
        self._names: dict[object, str] = {}

    def of(self, kind: inspection.Type) -> Schema:
        scalar = _SCALARS.get(type(kind))
        if scalar is not None:
            return scalar | _constraints(kind)
        match kind:
            case inspection.Metadata():
                return self.of(kind.type)
            case inspection.EnumType():
                return {"enum": sorted((each.value for each in kind.cls), key=_order)}
            case inspection.LiteralType():
                return {"enum": sorted(kind.values, key=_order)}
            case inspection.UnionType():
                return {"anyOf": sorted(map(self.of, kind.types), key=_order)}
            case inspection.CollectionType():
                return {"type": "array", "items": self.of(kind.item_type)} | _constraints(kind)
            case inspection.TupleType():
                return {"type": "array", "prefixItems": [self.of(each) for each in kind.item_types]}
            case inspection.DictType():
                return self._dict(kind)
            case inspection.CustomType():
                return self._model(kind.cls) if is_model(kind.cls) else {}
            case _:
                return self._named(kind)

    def _dict(self, kind: inspection.DictType) -> Schema:
        form: Schema = {"type": "object", "additionalProperties": self.of(kind.value_type)}
        key = self.of(kind.key_type)
        return (form if key == {"type": "string"} else form | {"propertyNames": key}) | (
            _constraints(kind)
        )

    def _named(self, kind: Any) -> Schema:
        name = self._names.get(kind.cls)
        if name is None:
            name = self._free(getattr(kind.cls, "__name__", str(kind.cls)))
            self._names[kind.cls] = name
            self.types[name] = {}
            self.types[name] = self._fields(kind)
        return {"$ref": REFERENCE + name}

    def _fields(self, kind: Any) -> Schema:
        fields: list[inspection.Field] = list(kind.fields)
        forms = {each.encode_name: self.of(each.type) for each in fields}
        required = [each.encode_name for each in fields if each.required]
        tag = getattr(kind, "tag_field", None)
        if tag is not None:
            forms = {tag: {"enum": [kind.tag]}} | forms
            required.insert(0, tag)
        if isinstance(kind, inspection.NamedTupleType) or getattr(kind, "array_like", False):
            return {"type": "array", "prefixItems": list(forms.values())}
        form: Schema = {"type": "object", "properties": forms, "required": required}
        if getattr(kind, "forbid_unknown_fields", False):
            form["additionalProperties"] = False
        return form

    def _model(self, model: Any) -> Schema:
        """A pydantic model says its form itself; the models it refers to join the other types."""
        name = self._names.get(model)
        if name is None:
            schema: Schema = model.model_json_schema()
            name = self._names[model] = self._free(model.__name__)
            self.types[name] = _plain(schema)
            for other, form in schema.get("$defs", {}).items():
                self.types.setdefault(other, _plain(form))
        return {"$ref": REFERENCE + name}

    def _free(self, name: str) -> str:
        number = 1
        free = name
        while free in self.types:
            number += 1
            free = f"{name}-{number}"
        return free


def _constraints(kind: inspection.Type) -> Schema:
    """What narrows a type, such as `ge` or `max_length`, by msgspec's own names."""
    found = {name: getattr(kind, name) for name in kind.__struct_fields__}
    return {
        name: value
        for name, value in found.items()
        if value is not None and value is not UNSET and not isinstance(value, inspection.Type)
    }


def _plain(schema: Any) -> Any:
    """A schema without what is only said to people."""
    if isinstance(schema, list):
        return [_plain(each) for each in cast("list[Any]", schema)]  # type: ignore[redundant-cast]  # pyright sees Unknown
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(each) for name, each in value.items()}
        if key == _NAMED
        else _plain(value)
        for key, value in cast("Schema", schema).items()
        if key not in _NOISE
    }
