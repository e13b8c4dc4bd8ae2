"""The manifest: a test fails when jobs that are stored could no longer be run."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tidemill import JobContext, Tidemill
from tidemill.errors import DeclarationError
from tidemill.testing import Manifest


@dataclass
class Receipt:
    amount: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.json"


def app(function: Callable[..., Any], name: str = "orders.capture", **options: Any) -> Tidemill:
    mill = Tidemill()
    mill.job(name, **options)(function)
    return mill


async def before(context: JobContext, payment: str, amount: int = 1) -> Receipt:
    return Receipt(amount)


def settled(path: Path, mill: Tidemill) -> Manifest:
    manifest = Manifest(path)
    with pytest.raises(AssertionError, match="was written: look at its diff and commit it"):
        manifest.check(mill)
    manifest.check(mill)
    return manifest


def test_the_first_check_writes_the_file_and_says_so(path: Path) -> None:
    settled(path, app(before, aliases=["capture"]))
    assert json.loads(path.read_text()) == {
        "format": 1,
        "jobs": {
            "orders.capture": {
                "parameters": {
                    "payment": {"required": True, "schema": {"type": "string"}},
                    "amount": {"required": False, "schema": {"type": "integer"}},
                },
                "returns": {"$ref": "#/$defs/Receipt"},
                "aliases": ["capture"],
                "types": {
                    "Receipt": {
                        "type": "object",
                        "properties": {"amount": {"type": "integer"}},
                        "required": ["amount"],
                    }
                },
            }
        },
    }


def test_its_order_is_that_of_the_names_not_of_the_declarations(path: Path) -> None:
    def job() -> None:
        """Do nothing."""

    def other() -> None:
        """Do nothing."""

    mill, again = Tidemill(), Tidemill()
    for name, function in (("b", job), ("a", other)):
        mill.job(name)(function)
    for name, function in (("a", other), ("b", job)):
        again.job(name)(function)
    settled(path, mill)
    Manifest(path).check(again)
    assert list(json.loads(path.read_text())["jobs"]) == ["a", "b"]
    assert path.read_text().endswith("}\n")


async def more(
    context: JobContext, payment: str | None, amount: int = 2, note: str = ""
) -> Receipt:
    return Receipt(amount)


def test_what_is_new_and_harmless_is_written_and_fails_once(path: Path) -> None:
    settled(path, app(before))
    mill = app(more)
    with pytest.raises(AssertionError, match="was brought up to date"):
        Manifest(path).check(mill)
    assert "note" in path.read_text()
    Manifest(path).check(mill)


def test_moving_and_renaming_the_function_changes_nothing(path: Path) -> None:
    manifest = settled(path, app(before))

    def elsewhere(payment: str, amount: int = 3) -> Receipt:
        return Receipt(amount)

    manifest.check(app(elsewhere))


def fewer(payment: str) -> Receipt:
    return Receipt(1)


def stricter(payment: str, amount: int) -> Receipt:
    return Receipt(amount)


def greedy(payment: str, currency: str, amount: int = 1) -> Receipt:
    return Receipt(amount)


def retyped(payment: int, amount: int = 1) -> Receipt:
    return Receipt(amount)


def narrowed(payment: str, amount: int = 1) -> int:
    return amount


BROKEN = [
    (fewer, "parameter 'amount' is gone"),
    (stricter, "parameter 'amount' has no default any more"),
    (greedy, "parameter 'currency' is new and has no default"),
    (retyped, 'parameter \'payment\' changed its type from {"type": "string"} to {"type": "integ'),
    (narrowed, "what it returns changed its type from"),
]


@pytest.mark.parametrize(("after", "what"), BROKEN, ids=[after.__name__ for after, _ in BROKEN])
def test_what_would_break_stored_jobs_is_named_and_not_written(
    path: Path, after: Callable[..., Any], what: str
) -> None:
    manifest = settled(path, app(before))
    text = path.read_text()
    with pytest.raises(AssertionError) as failed:
        manifest.check(app(after))
    assert f"orders.capture: {what}" in str(failed.value)
    assert "TIDEMILL_ACCEPT_MANIFEST=1" in str(failed.value)
    assert str(failed.value).count("\n  - ") == 1
    assert path.read_text() == text


def test_a_job_that_disappears_is_named(path: Path) -> None:
    manifest = settled(path, app(before, aliases=["capture"]))
    with pytest.raises(AssertionError) as failed:
        manifest.check(app(before, "orders.capture.v2"))
    assert "orders.capture is gone" in str(failed.value)
    assert "capture is gone" in str(failed.value)
    assert "aliases=['orders.capture']" in str(failed.value)


def test_a_renamed_job_that_keeps_its_old_name_is_harmless(path: Path) -> None:
    manifest = settled(path, app(before))
    mill = app(before, "orders.capture.v2", aliases=["orders.capture"])
    with pytest.raises(AssertionError, match="brought up to date"):
        manifest.check(mill)
    manifest.check(mill)


def test_a_renamed_job_is_still_held_against_its_old_signature(path: Path) -> None:
    manifest = settled(path, app(before))
    with pytest.raises(AssertionError, match=r"orders\.capture: parameter 'currency' is new"):
        manifest.check(app(greedy, "orders.capture.v2", aliases=["orders.capture"]))


def test_a_job_that_ignores_unknown_arguments_may_lose_a_parameter(path: Path) -> None:
    manifest = settled(path, app(before))
    with pytest.raises(AssertionError, match="brought up to date"):
        manifest.check(app(fewer, extra="ignore"))


def test_a_type_that_changes_behind_its_name_is_noticed(path: Path) -> None:
    @dataclass
    class Order:
        number: int

    def take(order: Order) -> None:
        """Do nothing."""

    manifest = settled(path, app(take))

    def declare() -> Callable[..., Any]:
        @dataclass
        class Order:
            number: int
            customer: str

        def take(order: Order) -> None:
            """Do nothing."""

        return take

    with pytest.raises(AssertionError, match="changed its type: a type it refers to did"):
        manifest.check(app(declare()))


def test_a_change_that_is_accepted_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = settled(path, app(before))
    monkeypatch.setenv("TIDEMILL_ACCEPT_MANIFEST", "1")
    manifest.check(app(retyped))
    monkeypatch.delenv("TIDEMILL_ACCEPT_MANIFEST")
    manifest.check(app(retyped))


def test_a_file_that_is_no_manifest_is_told(path: Path) -> None:
    for text in ("{", "[]", '{"format": 1}'):
        path.write_text(text)
        with pytest.raises(AssertionError, match="is no manifest"):
            Manifest(path).check(app(before))


def test_a_job_that_cannot_run_is_told(path: Path) -> None:
    def bad(what: "Nowhere") -> None:  # noqa: F821 - the fault
        """Do nothing."""

    with pytest.raises(DeclarationError, match="Nowhere"):
        Manifest(path).check(app(bad))
    assert not path.exists()
