"""Annotations are resolved late, and those under TYPE_CHECKING too."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tidemill.codec.annotations import resolve_annotation
from tidemill.errors import DeclarationError


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """Writes modules and imports one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(**files: str) -> Any:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return import_module(next(iter(files)).replace("__", "."))

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def annotation_of(function: Any, name: str = "x") -> Any:
    return resolve_annotation(function, function.__annotations__[name], f"parameter {name!r}")


def test_a_name_under_type_checking_is_imported_when_it_is_asked_for(module: Any) -> None:
    found = module(
        late_jobs="""
            from __future__ import annotations
            import typing
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from decimal import Decimal as Money
                import datetime as dt
                import collections.abc
            if typing.TYPE_CHECKING:
                from late_models import Order
            def sell(
                x: list[Order], money: Money | None, when: dt.datetime,
                words: collections.abc.Sequence[str],
            ) -> None: ...
        """,
        late_models="from late_jobs import sell\nclass Order: ...",
    )
    from collections.abc import Sequence
    from datetime import datetime
    from decimal import Decimal

    assert "late_models" not in sys.modules, "declaring must not import it"
    assert annotation_of(found.sell) == list[import_module("late_models").Order]
    assert annotation_of(found.sell, "money") == Decimal | None
    assert annotation_of(found.sell, "when") is datetime
    assert annotation_of(found.sell, "words") == Sequence[str]


def test_relative_imports_and_modules_as_names_are_found(module: Any) -> None:
    found = module(
        late_shop__jobs="""
            from __future__ import annotations
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from . import models
                from .models import Order
            def sell(x: Order, y: models.Order) -> None: ...
        """,
        late_shop__models="class Order: ...",
    )
    order = import_module("late_shop.models").Order
    assert annotation_of(found.sell) is order
    assert annotation_of(found.sell, "y") is order


def test_a_name_that_is_defined_later_in_the_module_is_found(module: Any) -> None:
    found = module(
        late_order="""
            from __future__ import annotations
            def sell(x: Order) -> None: ...
            class Order: ...
        """
    )
    assert annotation_of(found.sell) is found.Order


def test_a_name_of_an_enclosing_function_is_found_when_the_function_uses_it() -> None:
    class Order: ...

    def sell(x: "Order") -> None:
        Order()

    assert annotation_of(sell) is Order


@pytest.mark.parametrize("text", ["Nowhere", "list[Nowhere]", "pytest.nothing", "not a type"])
def test_an_annotation_that_cannot_be_resolved_is_named(text: str) -> None:
    def sell(x: Any) -> None: ...

    sell.__annotations__["x"] = text
    with pytest.raises(DeclarationError) as raised:
        annotation_of(sell)
    assert repr(text) in str(raised.value)
    assert "parameter 'x'" in str(raised.value)


def test_an_import_that_fails_is_told(module: Any) -> None:
    found = module(
        late_broken="""
            from __future__ import annotations
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from late_nowhere import Order
            def sell(x: Order) -> None: ...
        """
    )
    with pytest.raises(DeclarationError, match="late_nowhere"):
        annotation_of(found.sell)


def test_without_source_a_missing_name_is_still_a_clear_error() -> None:
    program = dedent("""
        from tidemill.codec.annotations import resolve_annotation
        from tidemill.errors import DeclarationError
        def sell(x: "Order") -> None: ...
        try:
            resolve_annotation(sell, "Order", "parameter 'x'")
        except DeclarationError as error:
            print(error)
    """)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "name 'Order' is not defined" in ran.stdout


def test_no_annotation_means_anything() -> None:
    import inspect

    assert resolve_annotation(lambda x: x, inspect.Parameter.empty, "x") is Any
