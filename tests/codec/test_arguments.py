"""Arguments: one JSON object keyed by parameter name."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.arguments import Arguments
from tidemill.errors import DeclarationError, DecodingError, EncodingError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: float
    y: float = 0.0


class Line(msgspec.Struct):
    points: list[Point]
    label: str | None = None


class Ratio(Enum):
    HALF = 0.5


class Odd:
    pass


class Card(msgspec.Struct, tag="card"):
    number: str


class Cash(msgspec.Struct, tag="cash"):
    amount: Decimal


def arguments(function: Callable[..., Any], *, ignore_unknown: bool = False) -> Arguments:
    parameters = inspect.signature(function).parameters.values()
    return Arguments("shop.sell", function, parameters, ignore_unknown=ignore_unknown)


def one(annotation: Any) -> Arguments:
    def sell(x): ...

    sell.__annotations__ = {"x": annotation}
    return arguments(sell)


def returned(annotation: Any, value: Any) -> Any:
    codec = one(annotation)
    return codec.decode(codec.encode((value,), {}))["x"]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "å \U0001f600 \0"),
        (int, 2**70),
        (float, 1.5),
        (bool, True),
        (None, None),
        (bytes, b"\x00\xff"),
        (datetime, datetime(2026, 3, 1, 12, 30, 0, 7, tzinfo=UTC)),
        (date, date(2026, 3, 1)),
        (timedelta, timedelta(hours=1, microseconds=3)),
        (UUID, UUID(int=7)),
        (Decimal, Decimal("1.10")),
        (Decimal, Decimal("Infinity")),
        (Colour, Colour.BLUE),
        (Level, Level.LOW),
        (Literal["a", "b"], "b"),
        (Point, Point(1.0, 2.0)),
        (Line, Line([Point(1.0)], "l")),
        (Card | Cash, Cash(Decimal("2.50"))),
        (list[Point], [Point(1.0), Point(2.0)]),
        (dict[int, set[str]], {1: {"a"}}),
        (tuple[int, str], (1, "a")),
        (UUID | None, None),
        (Any, {"a": [1, None, "x"]}),
        (object, ["a"]),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    back = returned(annotation, value)
    assert back == value
    assert type(back) is type(value)


def test_a_payload_is_one_object_keyed_by_parameter_name() -> None:
    def sell(order: int, *, note: str = "") -> None: ...

    codec = arguments(sell)
    assert codec.encode((7,), {"note": "x"}) == b'{"note":"x","order":7}'
    assert codec.encode((7,), {}) == b'{"order":7}', "defaults stay the handler's"
    assert codec.decode(b'{"order":7}') == {"order": 7}


@given(st.dictionaries(st.text(alphabet="abc", max_size=3), st.integers(), max_size=5))
def test_equal_arguments_make_equal_payloads(pairs: dict[str, int]) -> None:
    codec = one(dict[str, int])
    turned = dict(reversed(pairs.items()))
    assert codec.encode((pairs,), {}) == codec.encode((turned,), {})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_json_can_hold_comes_back_or_is_refused(value: Any) -> None:
    try:
        back = returned(Any, value)
    except EncodingError:
        assert "Infinity" in json.dumps(value)
    else:
        assert back == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("annotation", "wrap"),
    [
        (float, lambda number: number),
        (float | None, lambda number: number),
        (Any, lambda number: {"rows": [None, number]}),
        (list[float | None], lambda number: [None, number]),
        (Point, lambda number: Point(0.0, number)),
        (Line, lambda number: Line([Point(number)])),
        (dict[str, tuple[float | None, int]], lambda number: {"a": (number, 1)}),
    ],
)
def test_a_float_that_is_not_finite_is_refused_wherever_it_hides(
    number: float, annotation: Any, wrap: Callable[[float], Any]
) -> None:
    with pytest.raises(EncodingError, match=r"Argument 'x' of 'shop.sell' .* at \$"):
        one(annotation).encode((wrap(number),), {})


def test_none_beside_finite_floats_is_no_fault() -> None:
    assert returned(list[float | None], [None, 1.5]) == [None, 1.5]


@pytest.mark.parametrize("value", ["\ud800", ["a", "\udfff"], {"\ud800": 1}, Line([], "\ud800")])
def test_a_lone_surrogate_is_refused_by_the_parameters_name(value: Any) -> None:
    with pytest.raises(EncodingError, match=r"Argument 'x' of 'shop.sell' .*surrogate"):
        one(Any).encode((value,), {})


@pytest.mark.parametrize(
    ("annotation", "value", "word"),
    [
        (str, 1, "Expected `str`, got `int`"),
        (int, "1", "Expected `int`, got `str`"),
        (list[int], [1, "2"], r"\$\[1\]"),
        (Colour, "green", "green"),
        (Point, Line([]), "x"),
    ],
)
def test_an_argument_of_another_type_is_refused_when_it_is_enqueued(
    annotation: Any, value: Any, word: str
) -> None:
    with pytest.raises(EncodingError, match=rf"Argument 'x' of 'shop.sell' .*{word}"):
        one(annotation).encode((value,), {})


def test_what_has_no_text_is_refused() -> None:
    with pytest.raises(EncodingError, match=r"Argument 'x' .* type Odd"):
        one(Any).encode((Odd(),), {})


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(EncodingError, match="holds itself"):
        one(Any).encode((circle,), {})


def test_a_call_that_does_not_fit_is_a_type_error_with_the_jobs_name() -> None:
    with pytest.raises(TypeError, match=r"shop.sell: missing a required argument: 'x'"):
        one(str).encode((), {})
    with pytest.raises(TypeError, match=r"shop.sell: .*'y'"):
        one(str).encode(("a",), {"y": 1})


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"null", b"{", b'{"x":1}}', b"\xff", b'{"x":"\xff"}', b'{"x":NaN}']
)
def test_what_is_no_payload_does_not_decode(payload: bytes) -> None:
    with pytest.raises(DecodingError, match=r"shop\.sell"):
        one(str).decode(payload)


def test_a_parameter_that_no_longer_fits_is_named() -> None:
    with pytest.raises(DecodingError, match=r"Argument 'x' .*Expected `int`, got `str`"):
        one(int).decode(b'{"x":"seven"}')


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(DecodingError, match="lacks 'x'"):
        one(int).decode(b"{}")


def test_a_new_parameter_with_a_default_reads_older_payloads() -> None:
    def sell(order: int, *, gift: bool = False) -> None: ...

    assert arguments(sell).decode(b'{"order":1}') == {"order": 1}


def test_an_unknown_parameter_is_refused_unless_the_job_ignores_such() -> None:
    def sell(order: int) -> None: ...

    with pytest.raises(DecodingError, match=r"holds 'gift'.*extra=.ignore"):
        arguments(sell).decode(b'{"order":1,"gift":true}')
    assert arguments(sell, ignore_unknown=True).decode(b'{"order":1,"gift":true}') == {"order": 1}


def test_constraints_in_annotations_are_kept() -> None:
    from typing import Annotated

    with pytest.raises(EncodingError, match="`int` >= 1"):
        one(Annotated[int, msgspec.Meta(ge=1)]).encode((0,), {})


@pytest.mark.parametrize(
    "annotation",
    [Odd, Odd | None, list[Odd], dict[str, Odd], complex, Ratio, bytes | str, Point | Line, type],
    ids=repr,
)
def test_an_annotation_that_cannot_be_read_back_is_refused(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match=r"parameter 'x' of 'shop.sell'"):
        one(annotation).resolve()


def test_an_annotation_is_looked_at_inside_classes_too() -> None:
    @dataclass
    class Holder:
        odd: Odd

    with pytest.raises(DeclarationError, match="Odd"):
        one(Holder).resolve()


def test_a_class_that_names_itself_is_usable() -> None:
    assert returned(Tree, Tree([Tree([])])) == Tree([Tree([])])


class Tree(msgspec.Struct):
    children: list["Tree"]


def test_variable_and_positional_only_parameters_are_refused() -> None:
    def stars(*names: str) -> None: ...
    def words(**names: str) -> None: ...
    def first(name: str, /) -> None: ...

    with pytest.raises(DeclarationError, match=r"takes \*names"):
        arguments(stars)
    with pytest.raises(DeclarationError, match=r"takes \*\*names"):
        arguments(words)
    with pytest.raises(DeclarationError, match=r"'name' .*positional-only"):
        arguments(first)


class Modelled:
    """Has what the codec looks for in a pydantic model, and no more."""

    def __init__(self, name: str) -> None:
        self.name = name

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]:
        assert (mode, by_alias) == ("json", True)
        return {"name": self.name}

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> "Modelled":
        return cls(**json.loads(json_data))


def test_a_model_is_written_and_validated_by_its_own_methods() -> None:
    back = returned(dict[str, Modelled | None], {"a": Modelled("ada"), "b": None})
    assert back["a"].name == "ada"
    assert back["b"] is None


def test_a_model_that_does_not_validate_is_refused_with_its_parameter() -> None:
    with pytest.raises(DecodingError, match=r"Argument 'x' .*unexpected keyword"):
        one(Modelled).decode(b'{"x":{"size":1}}')


def test_a_real_pydantic_model_comes_back() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", id=(UUID, ...), at=(datetime, ...), raw=(bytes, b""))
    order = model(id=UUID(int=3), at=datetime(2026, 1, 1, tzinfo=UTC))
    assert returned(list[model], [order]) == [order]


def test_a_value_that_does_not_fit_is_told_by_its_last_error_alone() -> None:
    with pytest.raises(EncodingError, match="Expected `str`, got `int`") as refused:
        one(str).encode((1,), {})
    assert refused.value.__suppress_context__
    assert refused.value.__cause__ is None
