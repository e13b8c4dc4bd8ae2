"""The JSON form of types, and whether one form reads what another has written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
"""A JSON schema, with `format` where msgspec itself tells one text from another."""
Types = dict[str, Schema]
"""Named schemas that others refer to."""

REFERENCE = "#/$defs/"

_HANDLED = frozenset({
    *("type", "enum", "properties", "required", "additionalProperties"),
    *("items", "prefixItems", "uniqueItems"),
})  # fmt: skip
_WIDER = {("integer", "number")}


def reads(new: Schema, new_types: Types, old: Schema, old_types: Types) -> bool:
    """Whether everything that was written as `old` can be read as `new`.

    In doubt it cannot: a form that is compared keyword by keyword has to be equal.
    """
    return _Comparison(new_types, old_types).reads(new, old)


class _Comparison:
    """One comparison. Types that refer to themselves are assumed to fit while they are compared."""

    def __init__(self, new_types: Types, old_types: Types) -> None:
        self._new_types = new_types
        self._old_types = old_types
        self._compared: set[tuple[str, str]] = set()

    def reads(self, new: Schema, old: Schema) -> bool:
        pair = _name(new), _name(old)
        if all(pair):
            if pair in self._compared:
                return True
            self._compared.add(pair)
        new, old = _resolved(new, self._new_types), _resolved(old, self._old_types)
        if not new:
            return True
        if "anyOf" in old:
            return all(self.reads(new, each) for each in old["anyOf"])
        if "anyOf" in new:
            return any(self.reads(each, old) for each in new["anyOf"])
        return self._reads_plain(new, old)

    def _reads_plain(self, new: Schema, old: Schema) -> bool:
        if any(old.get(key) != value for key, value in new.items() if key not in _HANDLED):
            return False
        if "enum" in new:
            return set(map(repr, old.get("enum", [object()]))) <= set(map(repr, new["enum"]))
        if "enum" in old:
            return all(_type_of(value) == new.get("type") for value in old["enum"])
        types = old.get("type"), new.get("type")
        if types[0] != types[1]:
            return types in _WIDER
        return self._reads_object(new, old) and self._reads_array(new, old)

    def _reads_object(self, new: Schema, old: Schema) -> bool:
        if not set(new.get("required", ())) <= set(old.get("required", ())):
            return False
        fields: Types = new.get("properties", {})
        rest: Schema | bool = new.get("additionalProperties", True)
        for name, schema in old.get("properties", {}).items():
            if name not in fields and rest is False:
                return False
            if name in fields and not self.reads(fields[name], schema):
                return False
        others: Schema | bool = old.get("additionalProperties", True)
        return isinstance(others, bool) or isinstance(rest, bool) or self.reads(rest, others)

    def _reads_array(self, new: Schema, old: Schema) -> bool:
        were: list[Schema] | None = old.get("prefixItems")
        if "prefixItems" in new:
            places: list[Schema] = new["prefixItems"]
            return (
                were is not None and len(places) == len(were) and all(map(self.reads, places, were))
            )
        items: Schema = new.get("items", {})
        return all(self.reads(items, each) for each in were or [old.get("items", {})])


def _name(schema: Schema) -> str:
    reference: str = schema.get("$ref", "")
    return reference


def _resolved(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    while name := _name(schema):
        schema = types[name.removeprefix(REFERENCE)]
    return schema


def _type_of(value: object) -> str:
    if isinstance(value, str):
        return "string"
    return "integer" if isinstance(value, int) else ""
