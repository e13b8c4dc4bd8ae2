"""The kit itself: every fact names its clauses, and every topic is run here."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import tidemill.conformance as kit

HERE = Path(__file__).parent
CLAUSES = re.compile(r"^[A-M]\d*(, [A-M]\d+)*([.:]| )")


def facts(topic: str) -> dict[str, object]:
    module = import_module(f"tidemill.conformance.{topic}")
    return {name: each for name, each in vars(module).items() if name.startswith("test_")}


@pytest.mark.parametrize("topic", kit.TOPICS)
def test_every_fact_names_the_clauses_that_it_shows(topic: str) -> None:
    assert facts(topic)
    for name, fact in facts(topic).items():
        assert CLAUSES.match(inspect.getdoc(fact) or ""), f"{topic}.{name} names no clause"


def test_no_two_facts_have_the_same_name() -> None:
    names = [name for topic in kit.TOPICS for name in facts(topic)]
    assert len(names) == len(set(names))


def test_every_module_that_holds_facts_is_a_topic() -> None:
    room = Path(kit.__file__).parent
    holding = {path.stem for path in room.glob("*.py") if "\ndef test_" in path.read_text("utf-8")}
    assert holding == set(kit.TOPICS)


def test_every_topic_is_run_on_the_stores_of_this_repository() -> None:
    for topic in kit.TOPICS:
        glue = (HERE / f"test_{topic}.py").read_text(encoding="utf-8")
        assert f"from tidemill.conformance.{topic} import *" in glue


def test_the_kits_own_description_names_the_files_to_write() -> None:
    described = inspect.getdoc(kit) or ""
    for name in ("store_factory", "tidemill.conformance.plugin", "TOPICS"):
        assert name in described
