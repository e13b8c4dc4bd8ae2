"""The page of facts is the kit."""

from pathlib import Path

from tidemill.conformance import TOPICS
from tidemill.conformance.facts import facts, page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
STORES = ("memory", "SQLite", "PostgreSQL 15", "PostgreSQL 18")
WRITE = f"from tidemill.conformance.facts import page; print(page({STORES!r}), end='')"


def test_the_page_of_facts_is_made_from_the_kit():
    assert PAGE.read_text() == page(STORES), f'write it again: python -c "{WRITE}" > {PAGE}'


def test_every_fact_stands_under_each_of_its_clauses():
    told = list(facts())
    assert {fact.topic for fact in told} == set(TOPICS)
    shown = sum(line.startswith("- ") for line in page(STORES).splitlines())
    assert shown == sum(len(set(fact.clauses)) for fact in told)
    assert all(fact.clauses for fact in told)
