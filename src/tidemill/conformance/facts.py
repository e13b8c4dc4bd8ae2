"""The facts of the kit as a page of documentation, by clause, made from the facts themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

from tidemill.conformance import TOPICS

_CLAUSES = re.compile(r"[A-M]\d*")
_TOPICS = {
    "A": "Time and identity",
    "B": "States",
    "C": "Claim and lease",
    "D": "The fence",
    "E": "Retries",
    "F": "Enqueue",
    "G": "Cancellation",
    "H": "Dependencies",
    "I": "Schedules",
    "J": "Limits, pause, dispatch",
    "K": "Tags, output, progress, history",
    "L": "Operators and monitor",
    "M": "Stores",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: what it shows, the clauses it belongs to, and the module that holds it."""

    sentence: str
    clauses: tuple[str, ...]
    note: str
    topic: str


def facts() -> Iterator[Fact]:
    """Every fact of the kit, topic by topic, in the order in which a module tells them."""
    for topic in TOPICS:
        for name, fact in vars(import_module(f"tidemill.conformance.{topic}")).items():
            if name.startswith("test_"):
                yield _fact(topic, name, inspect.getdoc(fact) or "")


def page(stores: Sequence[str]) -> str:
    """The page, in Markdown; `stores` are those on which the kit is run."""
    told = list(facts())
    lines = [
        "# What every store is shown to do",
        "",
        "This page is made from the facts of `tidemill.conformance`, and a test keeps it so. Each",
        "line is a test, named by what it shows, that runs on every one of these stores:",
        f"{', '.join(stores)}.",
        "",
        f"There are {len(told)} facts, many of them run over all verdicts or states. A fact that",
        "shows several clauses stands under each of them. Those of `transactions` need a store",
        "with bridges, and so are not run in memory.",
    ]
    for letter, title in _TOPICS.items():
        clauses = sorted(
            {each for fact in told for each in fact.clauses if each[0] == letter}, key=_order
        )
        if clauses:
            lines += ["", f"## {letter}. {title}"]
        for clause in clauses:
            lines += ["", f"### {clause}", ""]
            lines += [_line(fact) for fact in told if clause in fact.clauses]
    return "\n".join([*lines, ""])


def _fact(topic: str, name: str, said: str) -> Fact:
    clauses, _, note = said.partition(":")
    sentence = name.removeprefix("test_").replace("_", " ")
    found = tuple(_CLAUSES.findall(clauses))
    first = note.strip().partition("\n\n")[0]
    return Fact(sentence, found, " ".join(first.split()).removesuffix("."), topic)


def _line(fact: Fact) -> str:
    note = f": {fact.note}" if fact.note else ""
    return f"- {fact.sentence[0].upper()}{fact.sentence[1:]}{note} (`{fact.topic}`)"


def _order(clause: str) -> tuple[str, int]:
    return clause[0], int(clause[1:] or 0)
