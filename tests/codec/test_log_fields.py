"""The fields of a log line: whatever they are, writing them never fails."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tidemill.codec.log_fields import write_fields


@dataclass
class Order:
    number: int


class Colour(Enum):
    RED = "red"


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def test_fields_are_one_object_of_plain_json() -> None:
    text = write_fields({"rows": 12, "table": "Größe", "done": True, "none": None})
    assert text == '{"rows":12,"table":"Größe","done":true,"none":null}'


def test_no_fields_are_no_text() -> None:
    assert write_fields({}) == ""


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Order(7), {"number": 7}),
        (Colour.RED, "red"),
        (datetime(2026, 1, 1), "2026-01-01T00:00:00"),  # noqa: DTZ001 - as a user may give it
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        ({2, 1}, [1, 2]),
        ((1, "a"), [1, "a"]),
        (10**30, 10**30),
    ],
)
def test_what_an_argument_may_be_is_written_as_one(value: Any, kept: Any) -> None:
    assert json.loads(write_fields({"field": value})) == {"field": kept}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), "nan"),
        ([float("inf")], "[inf]"),
        (Odd(), "<odd>"),
        ([Odd()], "[<odd>]"),
        (ValueError("no"), "ValueError('no')"),
        (ENDLESS, "[[...]]"),
        ("\ud800", "'\\ud800'"),
        (Unshowable(), "<Unshowable that cannot be shown>"),
        (10**5_000, "<int that cannot be shown>"),
        (nested(100_000), "<list that cannot be shown>"),
    ],
    ids=range(10),
)
def test_what_json_cannot_say_is_kept_as_python_shows_it(value: Any, kept: str) -> None:
    assert json.loads(write_fields({"field": value, "other": 1})) == {"field": kept, "other": 1}


@pytest.mark.parametrize("raw", [b"{no", b"1 2", b"\xff", b"NaN", b""])
def test_ready_made_json_that_is_none_is_kept_as_python_shows_it(raw: bytes) -> None:
    found = json.loads(write_fields({"field": msgspec.Raw(raw), "other": 1}))
    assert found["field"].startswith("<msgspec.Raw object at")
    assert found["other"] == 1


def test_ready_made_json_is_kept_as_it_is() -> None:
    assert write_fields({"field": msgspec.Raw(b'{"b":1,"a":2}')}) == '{"field":{"b":1,"a":2}}'


def test_names_too_are_text_that_can_be_printed() -> None:
    found = json.loads(write_fields({"\ud800": 1, "a\0b": 2}))
    assert found == {"\\ud800": 1, "a\0b": 2}
