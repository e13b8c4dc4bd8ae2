"""Which JSON form reads what another form has written."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pydantic
import pytest

from tidemill.testing.forms import schemas_of
from tidemill.testing.schemas import reads


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class MoreColours(Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


@dataclass
class Order:
    number: int


@dataclass
class Gift:
    number: int
    ribbon: str = "red"
    words: list[str] = field(default_factory=list[str])


@dataclass
class Marked:
    number: int
    ribbon: str


@dataclass
class Tree:
    """Refers to itself."""

    branches: "list[Tree]"


@dataclass
class WordyTree:
    branches: "list[WordyTree]"
    word: str = ""


@dataclass
class NumberedTree:
    branches: "list[NumberedTree]"
    number: int


class Model(pydantic.BaseModel):
    order: "Inner"


class Inner(pydantic.BaseModel):
    number: int


class WiderModel(pydantic.BaseModel):
    order: Inner
    note: str | None = None


class NarrowModel(pydantic.BaseModel):
    order: int


READS: list[tuple[Any, Any]] = [
    (int, int),
    (int, int | None),
    (int, float),
    (int | str, str | int | None),
    (datetime, str),
    (str, Any),
    (Order, object),
    (Colour, MoreColours),
    (Colour, str),
    (Literal["red"], Colour),
    (list[int], set[int]),
    (list[int], list[int | None]),
    (tuple[int, str], tuple[int, str]),
    (tuple[int, ...], list[int]),
    (dict[str, int], dict[str, float]),
    (Order, Gift),
    (Marked, Order),
    (Marked, Gift),
    (Tree, Tree),
    (Tree, WordyTree),
    (Model, Model),
    (Model, WiderModel),
    (None, int | None),
]
REFUSES: list[tuple[Any, Any]] = [
    (int, str),
    (int | None, int),
    (float, int),
    (str, datetime),
    (date, datetime),
    (str, UUID),
    (Decimal, int),
    (Any, int),
    (MoreColours, Colour),
    (str, Colour),
    (list[int], list[str]),
    (list[int], int),
    (tuple[int, str], tuple[int, int]),
    (tuple[int, str], tuple[int, str, int]),
    (list[int], tuple[int, str]),
    (dict[str, int], dict[str, str]),
    (Order, Marked),
    (Gift, Marked),
    (Order, int),
    (Tree, NumberedTree),
    (WiderModel, NarrowModel),
    (Model, NarrowModel),
]


def _reads(old: Any, new: Any) -> bool:
    (old_schema,), old_types = schemas_of([old])
    (new_schema,), new_types = schemas_of([new])
    return reads(new_schema, new_types, old_schema, old_types)


@pytest.mark.parametrize(("old", "new"), READS, ids=lambda kind: str(kind).replace("::", "."))
def test_what_was_written_is_read_by_a_wider_type(old: Any, new: Any) -> None:
    assert _reads(old, new)


@pytest.mark.parametrize(("old", "new"), REFUSES, ids=lambda kind: str(kind).replace("::", "."))
def test_what_was_written_is_not_read_by_another_type(old: Any, new: Any) -> None:
    assert not _reads(old, new)
