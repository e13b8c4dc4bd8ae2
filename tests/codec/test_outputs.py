"""Outputs: what a handler returned, for those who wait for it."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from tidemill.codec.outputs import Output
from tidemill.errors import DeclarationError, DecodingError, EncodingError


@dataclass
class Receipt:
    amount: int


class Odd:
    pass


def output(annotation: Any = None, **annotations: Any) -> Output:
    def sell(): ...

    sell.__annotations__ = annotations or {"return": annotation}
    return Output("shop.sell", sell)


def test_an_output_comes_back_as_the_annotation_says() -> None:
    codec = output(Receipt)
    assert codec.encode(Receipt(3)) == b'{"amount":3}'
    assert codec.decode(b'{"amount":3}') == Receipt(3)


def test_none_is_no_output() -> None:
    codec = output(Receipt | None)
    assert codec.encode(None) is None
    assert codec.decode(None) is None


def test_false_and_empty_values_are_outputs() -> None:
    codec = output(int | str | list[int])
    assert [codec.encode(value) for value in (0, "", [])] == [b"0", b'""', b"[]"]


def test_without_an_annotation_an_output_is_plain_data() -> None:
    def sell(): ...

    codec = Output("shop.sell", sell)
    assert codec.decode(codec.encode(Receipt(3))) == {"amount": 3}


@pytest.mark.parametrize("annotation", [Awaitable[Receipt], Coroutine[Any, Any, Receipt]])
def test_what_is_awaited_is_the_output(annotation: Any) -> None:
    assert output(annotation).decode(b'{"amount":3}') == Receipt(3)


def test_a_handler_that_never_returns_has_no_output() -> None:
    output(NoReturn).resolve()


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, "\ud800", Odd()])
def test_an_output_that_cannot_be_written_down_is_refused(value: Any) -> None:
    with pytest.raises(EncodingError, match=r"The output of 'shop\.sell'"):
        output(Any).encode(value)


def test_an_output_that_no_longer_reads_is_told() -> None:
    with pytest.raises(DecodingError, match=r"The output of 'shop\.sell' .*`amount`"):
        output(Receipt).decode(b'{"total":3}')


@pytest.mark.parametrize("annotation", [Odd, Callable[[], int], "Nowhere"])
def test_a_return_annotation_that_cannot_be_used_is_refused(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match=r"the return value of 'shop\.sell'"):
        output(annotation).resolve()
