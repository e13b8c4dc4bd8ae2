"""The kit itself: every fact names its clauses, and every topic is run here."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import tidemill.conformance as kit
from tidemill.conformance import channels, plugin
from tidemill.store.contract import Capabilities
from tidemill.store.memory import MemoryStore, VirtualClock

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
    supplied = ("store_factory", "own_clock_store_factory", "block_writers", "transactions_factory")
    for name in (*supplied, "tidemill.conformance.plugin", "TOPICS"):
        assert name in described


class WithoutBridges(MemoryStore):
    """A store that outlives its process, as it says, and takes part in no transaction."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(name="without bridges", hints=True, persistent=True)


def test_a_store_without_bridges_passes_the_fact_about_transactions_elsewhere() -> None:
    fact = "test_a_transaction_elsewhere_is_refused_by_every_store_that_outlives_its_process"
    getattr(channels, fact)(WithoutBridges(VirtualClock()))


class Ended:
    """The report of a test that passed."""

    def __init__(self, name: str, *, bridges: bool, in_transactions: bool = False) -> None:
        told = {"store": name, "bridges": bridges, "in_transactions": in_transactions}
        self.user_properties = [(f"conformance_{key}", value) for key, value in told.items()]


class Reporter:
    """The end of a run in which these tests passed."""

    def __init__(self, *passed: Ended) -> None:
        self.reports = {"passed": list(passed), "failed": []}
        self.lines: list[str] = []
        self.getreports = self.reports.__getitem__
        self.write_line = self.lines.append


def test_the_last_line_of_a_store_says_whether_it_was_shown_in_transactions() -> None:
    reporter = Reporter(
        Ended("seen", bridges=True, in_transactions=True),
        Ended("seen", bridges=True),
        Ended("unseen", bridges=True),
        Ended("without", bridges=False),
    )
    plugin.pytest_terminal_summary(reporter)
    holding = [line.replace(": 1 facts hold, 0 do not;", ":") for line in reporter.lines]
    assert holding == [
        "conformance of seen: 2 facts hold, 0 do not; 1 of them in transactions of a user's",
        "conformance of unseen: none of them in transactions of a user's, although it has bridges",
        "conformance of without: none of them in transactions of a user's, since it has no bridges",
    ]
