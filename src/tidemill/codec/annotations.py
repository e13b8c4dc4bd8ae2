"""Turning annotations into types, as late as possible.

Names that are imported under `if TYPE_CHECKING:` do not exist when the program runs. They are
found in the module's source and imported the first time a signature is resolved, when the
circles that such imports avoid have long been closed.
"""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

from tidemill.errors import DeclarationError


def resolve_annotation(function: Callable[..., Any], annotation: object, where: str) -> Any:
    """The type that an annotation of `function` stands for; unannotated is `Any`.

    `where` names the annotation in errors, such as `parameter 'order' of orders.ship`.

    Raises:
        DeclarationError: a name in it cannot be found.
    """
    if annotation is inspect.Parameter.empty:
        return Any
    plain = inspect.unwrap(function)
    names = _closure(plain)
    while True:
        try:
            return _evaluate(annotation, plain.__globals__, names)
        except NameError as error:
            missing = str(error.name)
            found = _checked_import(plain.__module__, missing)
            if found is None or missing in names:
                raise _unresolved(annotation, where, error) from error
            names[missing] = _loaded(found, annotation, where)
        except Exception as error:
            raise _unresolved(annotation, where, error) from error


def _loaded(load: Callable[[], Any], annotation: object, where: str) -> Any:
    try:
        return load()
    except Exception as error:  # importing runs the module, which may raise anything
        raise _unresolved(annotation, where, error) from error


def _evaluate(annotation: object, namespace: dict[str, Any], names: Mapping[str, Any]) -> Any:
    def probe() -> None: ...

    probe.__annotations__ = {"it": annotation}
    return typing.get_type_hints(probe, namespace, names, include_extras=True)["it"]


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    free: tuple[str, ...] = function.__code__.co_freevars
    cells: tuple[Any, ...] = function.__closure__ or ()
    known: dict[str, Any] = {}
    for name, cell in zip(free, cells, strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # it is assigned after the function was defined, or never
            continue
    return known


def _checked_import(module_name: str, name: str) -> Callable[[], Any] | None:
    module = sys.modules.get(module_name)
    if module is None:
        return None
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):  # no source: a prompt, a frozen program
        return None
    return dict(_checked_imports(tree, module)).get(name)


def _checked_imports(tree: ast.Module, module: ModuleType) -> Iterator[tuple[str, Any]]:
    package = module.__package__ or ""
    for block in ast.walk(tree):
        if not (isinstance(block, ast.If) and _is_type_checking(block.test)):
            continue
        for node in block.body:
            if isinstance(node, ast.ImportFrom):
                source = resolve_name("." * node.level + (node.module or ""), package)
                for alias in node.names:
                    yield alias.asname or alias.name, _loader(source, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    yield alias.asname or whole, _loader(alias.name, None, whole)


def _loader(source: str, attribute: str | None, answer: str = "") -> Callable[[], Any]:
    def load() -> Any:
        module = import_module(source)
        if attribute is None:
            return sys.modules[answer]
        if hasattr(module, attribute):
            return getattr(module, attribute)
        return import_module(f"{source}.{attribute}")

    return load


def _is_type_checking(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case _:
            return False


def _unresolved(annotation: object, where: str, error: Exception) -> DeclarationError:
    return DeclarationError(
        f"The annotation {annotation!r} of {where} cannot be resolved: {error}. "
        "Import what it names where the job is declared, at the top of the module or under "
        "`if TYPE_CHECKING:`."
    )
