"""The rules of the house that no other checker knows.

Each rule is a function from one file, its path and text, to the faults it finds.
`RULES` says which files a rule reads. The first test runs every rule over the
repository; the rest show that each rule can fail, and what it leaves alone.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest
from tests.tidy.file import FUNCTION, File
from tests.tidy.sleeping import SLEEPERS, does_not_sleep
from tests.tidy.words import (
    speaks_the_glossary,
    speaks_the_glossary_in_prose,
    speaks_the_glossary_in_sql,
    speaks_the_glossary_to_users,
)

ROOT = Path(__file__).parent.parent

MOST_LINES = 500
MOST_SQL_LINES = 250
MOST_FUNCTION_LINES = 70

# What may be longer, each with its reason: a path, or "path::function".
LONGER: dict[str, str] = {}

# Rooms of the tests that mirror no room of src.
OWN_ROOMS = {
    "api": "the user's side: what the public modules do together",
    "docs": "the examples of the documentation, run",
    "front_door": "the package itself",
    "installation": "the wheel, and an environment that has nothing else",
    "mutants": "guards with one condition removed, which the suites must notice",
    "plans": "shrunk failures of the simulator, replayed for ever",
    "promises": "end to end, by promise",
    "tidy": "these rules",
    "typing": "samples of users' code",
}

LEFTOVERS = re.compile(r"^(utils?|helpers?|managers?|common|misc)$")

SOMEDAY = re.compile(r"\bTO[D]O\b|\bFIX[M]E\b|\bX[X]X\b|\bfor n[o]w\b(?!\()")
BARE = re.compile(r"#\s*(?:type:\s*ignore(?!\[)|pyright:\s*ignore(?!\[)|noqa(?!:\s*[A-Z]+\d))")
PATHS = re.compile(r"(?<![\w.~-])/(?:wor[k]|roo[t]|op[t]|hom[e]/\w+)(?:/|\b)")
HOSTS = re.compile(r"\b(?:py[p]i|test\.py[p]i)\.org|pythonhoste[d]\.org|\bnp[m]js\.|debia[n]\.org")
FRAGMENT = re.compile(r"^\+[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed)\.md$")
NOTE = re.compile(r"^\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md$")
HEADINGS = ["Decision", "Why", "Rejected", "Price"]


def is_short_enough(file: File) -> Iterator[str]:
    lines = file.text.count("\n")
    most = MOST_SQL_LINES if file.path.endswith(".sql") else MOST_LINES
    if lines > most and file.path not in LONGER:
        yield f"{lines} lines, and {most} are the ceiling: split it by topic"


def has_short_functions(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree):
        if not isinstance(node, FUNCTION):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > MOST_FUNCTION_LINES and f"{file.path}::{node.name}" not in LONGER:
            yield f"{node.name} has {lines} lines, and {MOST_FUNCTION_LINES} are the ceiling"


def is_named_for_a_duty(file: File) -> Iterator[str]:
    for part in (*file.parts[:-1], file.stem):
        if LEFTOVERS.match(part):
            yield f"{part} is a name for leftovers: name the duty"


def puts_nothing_off(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), start=1):
        if found := SOMEDAY.search(line):
            yield f"line {number} says {found[0]!r}: do it now, or write down why not"


def silences_by_name(file: File) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT and BARE.search(token.string):
            yield f"line {token.start[0]} silences every error: name the one that is meant"


def names_no_machine(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), start=1):
        if found := PATHS.search(line) or HOSTS.search(line):
            yield f"line {number} names a machine or a registry host: {found[0]}"


def mirrors_a_room(file: File) -> Iterator[str]:
    inside = PurePosixPath(file.path).relative_to("tests")
    room = inside.parts[0] if len(inside.parts) > 1 else inside.stem.removeprefix("test_")
    source = ROOT / "src" / "tidemill"
    if not (room in OWN_ROOMS or (source / room).is_dir() or (source / f"{room}.py").is_file()):
        yield f"there is no room {room!r} in src/tidemill that it could mirror"


def imports_rooms_only(file: File) -> Iterator[str]:
    """Inside the package nothing goes out by the front door to come in again."""
    source = ROOT / "src" / "tidemill"
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import) and any(name.name == "tidemill" for name in node.names):
            yield f"line {node.lineno} imports the front door: import from the room"
        elif isinstance(node, ast.ImportFrom) and node.module == "tidemill" and not node.level:
            for name in node.names:
                if not ((source / name.name).is_dir() or (source / f"{name.name}.py").is_file()):
                    yield f"line {node.lineno} imports {name.name} by the front door"


def is_a_decision_note(file: File) -> Iterator[str]:
    if not NOTE.match(PurePosixPath(file.path).name):
        yield "its name is not NNNN-some-words.md"
    headings = re.findall(r"^## (.+)$", file.text, re.MULTILINE)
    if headings != HEADINGS:
        yield f"its headings are {headings}, and should be {HEADINGS}"


def is_a_fragment(file: File) -> Iterator[str]:
    name = PurePosixPath(file.path).name
    if name != "README.md" and not FRAGMENT.match(name):
        yield "its name is not +<slug>.<kind>.md; changelog.d/README.md says more"
    if not file.text.strip():
        yield "it is empty"


PYTHON = ["src/**/*.py", "tests/**/*.py", "benchmarks/**/*.py"]
SQL = ["src/**/*.sql"]
PROSE = ["*.md", "docs/**/*.md", "changelog.d/*.md"]
USERS = ["src/tidemill/*.py", "src/tidemill/cli/**/*.py", "src/tidemill/values/*.py"]
SETTINGS = ["*.toml", "Makefile", ".ci/*", "requirements/*", ".gitignore", "docs/**/*.yml"]

RULES: list[tuple[Callable[[File], Iterator[str]], list[str]]] = [
    (is_short_enough, [*PYTHON, *SQL]),
    (has_short_functions, PYTHON),
    (is_named_for_a_duty, PYTHON),
    (speaks_the_glossary, ["src/tidemill/**/*.py"]),
    (speaks_the_glossary_in_sql, SQL),
    (speaks_the_glossary_in_prose, PROSE),
    (speaks_the_glossary_to_users, USERS),
    (puts_nothing_off, [*PYTHON, *SQL, *PROSE, *SETTINGS]),
    (silences_by_name, PYTHON),
    (names_no_machine, [*PYTHON, *SQL, *PROSE, *SETTINGS]),
    (mirrors_a_room, ["tests/**/test_*.py"]),
    (does_not_sleep, ["tests/**/*.py"]),
    (imports_rooms_only, ["src/tidemill/**/*.py"]),
    (is_a_decision_note, ["docs/decisions/*.md"]),
    (is_a_fragment, ["changelog.d/*"]),
]


@pytest.mark.parametrize(
    ("rule", "patterns"), RULES, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_file_of_the_repository(
    rule: Callable[[File], Iterator[str]], patterns: list[str]
) -> None:
    paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})
    faults = []
    for path in paths:
        file = File(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        faults += [f"{file.path}: {fault}" for fault in rule(file)]
    assert not faults, "\n".join(faults)


def test_every_exception_from_a_ceiling_is_needed_and_has_a_reason() -> None:
    for name, reason in LONGER.items():
        assert (ROOT / name.partition("::")[0]).is_file(), f"{name} is gone"
        assert reason


def test_every_file_that_may_sleep_does_and_has_a_reason() -> None:
    for name, reason in SLEEPERS.items():
        assert is_asleep((ROOT / name).read_text(encoding="utf-8"))
        assert reason


def is_asleep(text: str) -> bool:
    return bool(list(does_not_sleep(File("tests/elsewhere.py", text))))


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = "\n".join(project["dependencies"])
    asked += "\n" + (ROOT / "requirements/dev.in").read_text(encoding="utf-8")
    pinned = (ROOT / "requirements/dev.txt").read_text(encoding="utf-8")
    names = set(re.findall(r"^[a-z][\w-]*", asked, re.MULTILINE))
    missing = names - set(re.findall(r"^([\w-]+)==", pinned, re.MULTILINE))
    assert not missing, f"run make requirements: {sorted(missing)} are not pinned"


LONG_FUNCTION = "def f():\n" + "    x = 1\n" * MOST_FUNCTION_LINES

FAULTY: list[tuple[Callable[[File], Iterator[str]], str, str]] = [
    (is_short_enough, "src/tidemill/app.py", "x = 1\n" * (MOST_LINES + 1)),
    (is_short_enough, "src/tidemill/sql/claim.sql", "--\n" * (MOST_SQL_LINES + 1)),
    (has_short_functions, "src/tidemill/app.py", LONG_FUNCTION),
    (has_short_functions, "src/tidemill/app.py", "async " + LONG_FUNCTION),
    (is_named_for_a_duty, "src/tidemill/core/utils.py", ""),
    (is_named_for_a_duty, "src/tidemill/common/claim.py", ""),
    (is_named_for_a_duty, "tests/helpers.py", ""),
    (speaks_the_glossary, "src/tidemill/core/consumer.py", ""),
    (speaks_the_glossary, "src/tidemill/core/x.py", "class JobTask: ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "class Message: ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "class JobDAO: ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "def pending_tasks(): ..."),
    (speaks_the_glossary, "src/tidemill/torture/x.py", "def chaos(): ..."),
    (speaks_the_glossary, "src/tidemill/integrations/x.py", "async def open_broker(): ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "def run(task): ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "def run(*, consumers): ..."),
    (speaks_the_glossary_in_sql, "src/tidemill/sql/x.sql", "CREATE INDEX by_task_id ON t (id)"),
    (speaks_the_glossary_in_sql, "src/tidemill/sql/x.sql", "-- what the consumers see"),
    (speaks_the_glossary_in_prose, "README.md", "It is a task\nqueue."),
    (speaks_the_glossary_in_prose, "README.md", "The broker hands it out."),
    (speaks_the_glossary_in_prose, "README.md", "Failed jobs are kept."),
    (speaks_the_glossary_in_prose, "docs/index.md", "A job which fails is acked."),
    (speaks_the_glossary_in_prose, "docs/index.md", "It has a budget of tries."),
    (speaks_the_glossary_to_users, "src/tidemill/cli/x.py", "f(help='List failed jobs.')"),
    (speaks_the_glossary_to_users, "src/tidemill/cli/x.py", "f'{n} consumers'"),
    (puts_nothing_off, "src/tidemill/app.py", "# TO" + "DO: later"),
    (puts_nothing_off, "docs/index.md", "It is left out for " + "now."),
    (silences_by_name, "src/tidemill/app.py", "x = 1  # type: " + "ignore"),
    (silences_by_name, "src/tidemill/app.py", "x = 1  # no" + "qa - a reason"),
    (silences_by_name, "src/tidemill/app.py", "x = 1  # pyright: " + "ignore"),
    (names_no_machine, "docs/index.md", "Look into /ro" + "ot/.cache first."),
    (names_no_machine, "requirements/dev.txt", "--index-url https://py" + "pi.org/simple"),
    (mirrors_a_room, "tests/cellar/test_wine.py", ""),
    (mirrors_a_room, "tests/test_wine.py", ""),
    (does_not_sleep, "tests/test_x.py", "time.sleep(0.1)"),
    (does_not_sleep, "tests/test_x.py", "async def f(): await asyncio.sleep(3600)"),
    (does_not_sleep, "tests/test_x.py", "sleep(1)"),
    (does_not_sleep, "tests/test_x.py", "time.sleep(BREATH)"),
    (does_not_sleep, "tests/test_x.py", "async def f(): await asyncio.sleep(delay=1)"),
    (does_not_sleep, "tests/test_x.py", "threading.Event().wait(0.01)"),
    (does_not_sleep, "tests/test_x.py", "Event().wait(timeout=BREATH)"),
    (does_not_sleep, "tests/test_x.py", "deadline, breath = 1, Event()\nbreath.wait(BREATH)"),
    (does_not_sleep, "tests/test_x.py", "asyncio.wait_for(asyncio.Event().wait(), 0.1)"),
    (imports_rooms_only, "src/tidemill/core/x.py", "from tidemill import Tidemill"),
    (imports_rooms_only, "src/tidemill/core/x.py", "import tidemill"),
    (is_a_decision_note, "docs/decisions/layers.md", "## Decision\n## Why\n## Rejected\n## Price"),
    (is_a_decision_note, "docs/decisions/0009-x.md", "## Decision\n## Why\n## Price"),
    (is_a_fragment, "changelog.d/12.bugfix.md", "A change."),
    (is_a_fragment, "changelog.d/+a-change.fixed.md", "\n"),
]


@pytest.mark.parametrize(("rule", "path", "text"), FAULTY)
def test_each_rule_finds_its_fault(
    rule: Callable[[File], Iterator[str]], path: str, text: str
) -> None:
    assert list(rule(File(path, text)))


INNOCENT: list[tuple[Callable[[File], Iterator[str]], str, str]] = [
    (is_short_enough, "src/tidemill/app.py", "x = 1\n" * MOST_LINES),
    (is_named_for_a_duty, "src/tidemill/core/commands.py", ""),
    (speaks_the_glossary, "src/tidemill/shell/pump.py", "def stop_tasks(): ..."),
    (speaks_the_glossary, "src/tidemill/core/x.py", "def message_of(e): task = items = e"),
    (speaks_the_glossary, "src/tidemill/core/x.py", "class Multitasking: ..."),
    (speaks_the_glossary, "src/tidemill/shell/pump.py", "def ended(task): ..."),
    (speaks_the_glossary_in_sql, "src/tidemill/sql/x.sql", "SELECT id FROM jobs -- tasking"),
    (speaks_the_glossary_in_prose, "README.md", "No broker, and no leader. A job fails to start."),
    (speaks_the_glossary_in_prose, "README.md", "It tries again; a failed attempt is kept."),
    (puts_nothing_off, "src/tidemill/app.py", "# The statement asks for now() once."),
    (silences_by_name, "src/tidemill/app.py", "x = 1  # noqa: S105 - a name, no password"),
    (silences_by_name, "src/tidemill/app.py", "x = '# noqa'"),
    (silences_by_name, "src/tidemill/app.py", "x = 1  # type: ignore[assignment]"),
    (
        names_no_machine,
        "docs/index.md",
        "src/o" + "pt/a, ~/wo" + "rk/b and https://example.org/wo" + "rk-queue",
    ),
    (does_not_sleep, "tests/test_x.py", "async def f(): await asyncio.sleep(0)"),
    (does_not_sleep, "tests/test_x.py", "clock.sleep(until)"),
    (does_not_sleep, "tests/test_x.py", "async def f(): await asyncio.Event().wait()"),
    (does_not_sleep, "tests/test_x.py", "go = Event()\nstart(go)\ngo.wait(60)"),
    (does_not_sleep, "tests/test_x.py", "go = Event()\ngo.set()\nassert go.wait(60)"),
    (does_not_sleep, "tests/waiting.py", "time.sleep(BREATH)"),
    (does_not_sleep, "tests/typing/jobs.py", "async def f(): await asyncio.sleep(1)"),
    (imports_rooms_only, "src/tidemill/core/x.py", "from tidemill import values"),
    (is_a_fragment, "changelog.d/+a-change.fixed.md", "A change."),
]


@pytest.mark.parametrize(("rule", "path", "text"), INNOCENT)
def test_each_rule_leaves_the_innocent_alone(
    rule: Callable[[File], Iterator[str]], path: str, text: str
) -> None:
    assert list(rule(File(path, text))) == []
