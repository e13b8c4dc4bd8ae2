"""The manifest: the stored form of every job of an app, as a file under version control."""

from __future__ import annotations

import collections.abc
import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from tidemill.app import Tidemill
from tidemill.codec.annotations import resolve_annotation
from tidemill.registry import JobDefinition, Registry
from tidemill.testing.forms import schemas_of
from tidemill.testing.parameters import ignores_unknown, parameters_of
from tidemill.testing.schemas import reads

ACCEPT = "TIDEMILL_ACCEPT_MANIFEST"
"""The environment variable that has `check` write the file whatever changed."""

_FORMAT = 1
_AWAITED = (collections.abc.Awaitable, collections.abc.Coroutine)
_NULL = {"type": "null"}

Entry = dict[str, Any]
"""One job: its aliases, parameters, result, and the types that these refer to."""


class Manifest:
    """The committed list of an app's wire names with their signatures.

    Jobs outlive the code that enqueued them. A test that checks the manifest fails when a job that
    is stored already could no longer be run, and shows every other change in the diff.

    Args:
        path: the file, JSON in a stable order; the first check writes it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def check(self, mill: Tidemill) -> None:
        """Hold the app's jobs against the file.

        A file that is not there, or lacks what is new and harmless, is written, and the check
        fails that once, so that the file gets committed.

        Raises:
            AssertionError: a wire name or a parameter is gone, a parameter has no default or
                another type, or the file was written just now. The message says which, and how to
                accept it.
            DeclarationError: a job that cannot run.
        """
        __tracebackhide__ = True
        mill.load_imports()
        entries = _entries(mill.registry)
        written = self._read()
        if written == entries:
            return
        broken = [] if written is None else list(_broken(written, entries, mill.registry))
        if broken and not os.environ.get(ACCEPT):
            raise AssertionError(_refusal(self.path, broken))
        self._write(entries)
        if not os.environ.get(ACCEPT):
            what = "written" if written is None else "brought up to date"
            message = (
                f"The manifest {self.path} was {what}: look at its diff and commit it. "
                "The next run passes."
            )
            raise AssertionError(message)

    def _read(self) -> dict[str, Entry] | None:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            found: dict[str, Entry] = content["jobs"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            message = f"{self.path} is no manifest: {error!r}. Delete it to have it written anew."
            raise AssertionError(message) from error
        return found

    def _write(self, entries: dict[str, Entry]) -> None:
        content = {"format": _FORMAT, "jobs": entries}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        self.path.write_text(text, encoding="utf-8")


def _entries(registry: Registry) -> dict[str, Entry]:
    return {each.wire_name: _entry(each) for each in sorted(registry, key=lambda d: d.wire_name)}


def _entry(definition: JobDefinition) -> Entry:
    definition.resolve()
    parameters = parameters_of(definition)
    function = definition.function
    annotations = [each.annotation for each in parameters.values()]
    annotations.append(inspect.signature(function).return_annotation)
    kinds = [_kind(function, annotation, definition.wire_name) for annotation in annotations]
    (*schemas, returns), types = schemas_of(kinds)
    entry: Entry = {
        "parameters": {
            name: {"required": parameter.default is parameter.empty, "schema": schema}
            for (name, parameter), schema in zip(parameters.items(), schemas, strict=True)
        },
        "returns": returns,
    }
    if definition.aliases:
        entry["aliases"] = sorted(definition.aliases)
    if types:
        entry["types"] = types
    # What tuples and defaults are made of has to compare equal to what the file says.
    plain: Entry = json.loads(json.dumps(entry))
    return plain


def _kind(function: Any, annotation: object, wire_name: str) -> Any:
    kind = resolve_annotation(function, annotation, f"a parameter of {wire_name!r}")
    return get_args(kind)[-1] if get_origin(kind) in _AWAITED else kind


def _broken(
    written: dict[str, Entry], entries: dict[str, Entry], registry: Registry
) -> Iterator[str]:
    """What jobs that are stored already could not be run or read by."""
    for wire_name, old in written.items():
        for name in (wire_name, *old.get("aliases", ())):
            definition = registry.get(name)
            if definition is None:
                yield f"{name} is gone. A job that took its place keeps it with aliases=[{name!r}]."
        definition = registry.get(wire_name)
        if definition is not None:
            new = entries[definition.wire_name]
            lenient = ignores_unknown(definition)
            for fault in _faults(old, new, lenient=lenient):
                yield f"{wire_name}: {fault}"


def _faults(old: Entry, new: Entry, *, lenient: bool) -> Iterator[str]:
    before, after = old["parameters"], new["parameters"]
    types, were = new.get("types", {}), old.get("types", {})
    for name, parameter in before.items():
        if name not in after:
            if not lenient:
                yield f'parameter {name!r} is gone. Keep it, or declare the job extra="ignore".'
        elif not reads(after[name]["schema"], types, parameter["schema"], were):
            yield f"parameter {name!r} changed its type{_change(parameter, after[name])}."
        elif after[name]["required"] and not parameter["required"]:
            yield f"parameter {name!r} has no default any more, and stored jobs may lack it."
    for name, parameter in after.items():
        if name not in before and parameter["required"]:
            yield f"parameter {name!r} is new and has no default, and stored jobs lack it."
    if old["returns"] != _NULL and not reads(new["returns"], types, old["returns"], were):
        said = _change({"schema": old["returns"]}, {"schema": new["returns"]})
        yield f"what it returns changed its type{said}."


def _change(before: Entry, after: Entry) -> str:
    old, new = json.dumps(before["schema"]), json.dumps(after["schema"])
    return f" from {old} to {new}" if old != new else ": a type it refers to did"


def _refusal(path: Path, broken: list[str]) -> str:
    faults = "\n".join(f"  - {fault}" for fault in broken)
    return (
        f"Jobs that are stored already could no longer be run (manifest {path}):\n{faults}\n"
        "Give a changed job a new wire name and keep the old one until its last job has run, or, "
        f"if no such job is stored any more, accept it: run this test once with {ACCEPT}=1 and "
        "commit the manifest."
    )
