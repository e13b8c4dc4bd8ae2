"""The front door: what `import tidemill` offers, and what it costs."""

import inspect
import subprocess
import sys

import tidemill

MOST_NAMES = 21
HEAVY = ["asyncpg", "click", "dishka", "psycopg", "rich", "sqlalchemy"]


def exported() -> list[str]:
    return list(getattr(tidemill, "__all__", []))


def test_what_it_offers_is_what_it_lists() -> None:
    found = {
        name
        for name, value in vars(tidemill).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert found <= set(exported())
    assert [name for name in exported() if not hasattr(tidemill, name)] == []


def test_its_list_is_sorted() -> None:
    constants_first = sorted(exported(), key=lambda name: (not name.isupper(), name))
    assert exported() == constants_first


def test_it_is_small() -> None:
    assert len(exported()) <= MOST_NAMES


def test_every_name_is_documented() -> None:
    undocumented = [name for name in exported() if not inspect.getdoc(getattr(tidemill, name))]
    assert undocumented == []


def test_opening_it_loads_nothing_heavy() -> None:
    program = f"import sys, tidemill; print(*sorted(set(sys.modules) & set({HEAVY})))"
    opened = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert opened.stdout.split() == []
