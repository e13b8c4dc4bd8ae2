"""One word for one thing: the glossary's words to avoid, in names, in SQL and in prose."""

import ast
import re
from collections.abc import Iterator, Mapping

from tests.tidy.file import FUNCTION, File

# Avoid words of the glossary that can mean nothing else in a name.
AVOIDED = {
    "backend": "store or driver",
    "broker": "store",
    "chaos": "torture",
    "consumer": "handler or worker",
    "dao": "program",
    "finalize": "settle",
    "flavour": "dialect",
    "fuzzer": "simulator",
    "middleware": "observer",
    "misfire": "catch-up",
    "prefetch": "slots, or backpressure",
    "repository": "store",
    "revive": "requeue",
    "semaphore": "concurrency limit",
    "task": "job, attempt or activity",
    "throttle": "rate limit",
}
# These are ordinary words in a function's name, but not as a noun of ours.
AVOIDED_IN_CLASSES = AVOIDED | {
    "callback": "handler",
    "engine": "core",
    "helper": "the duty it has",
    "item": "job",
    "manager": "the duty it has",
    "message": "job, event or command",
    "orphan": "a lapsed attempt",
    "util": "the duty it has",
}
# Rooms where a word of another library is meant: asyncio's tasks, anyio's and
# Django's backends, Django's tasks, a web framework's middleware.
FOREIGN = {
    "adapters": {"task"},
    "conformance": {"backend"},
    "integrations": {"backend", "middleware", "task"},
    "shell": {"task"},
    "testing": {"backend"},
}

# Names that a database gave to things of its own.
FOREIGN_IN_SQL = {"backend_type", "pg_backend_pid"}

# Words and phrases that mean one thing only in prose, whatever stands around them.
AVOIDED_IN_PROSE = {
    r"(?<!no )brokers?": "store",
    r"(?:task|message|work) queues?": "queue, or Tidemill",
    r"(?:background|queued) tasks?": "job",
    r"fail(?:ed|ing) jobs?|jobs? (?:that|which) fail(?:ed|s)?": "dead job, or failed attempt",
    r"dead[- ]letter queue": "dead letters",
    r"consumers?": "handler or worker",
    r"exactly[- ]once (?:delivery|execution)": "effect-once",
    r"visibility timeouts?|keep-alives?": "lease, or heartbeat",
    r"n?acks?|n?acked|acknowledge(?:s|d|ments?)?": "report, or outcome",
    r"middlewares?": "observer",
    r"prefetch(?:es|ed|ing)?": "slots, or backpressure",
    r"(?:concurrency )?semaphores?": "concurrency limit",
    r"misfires?|misfired": "catch-up",
    r"recurring jobs?": "schedule",
    r"(?:a|another|each|further|no|one|per) try(?! to)": "attempt",
    r"(?:budget of|more|most|\d+) tries": "attempts",
}
PROSE_WORDS = {
    re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): instead
    for pattern, instead in AVOIDED_IN_PROSE.items()
}


def speaks_the_glossary(file: File) -> Iterator[str]:
    foreign = FOREIGN.get(file.parts[2], set())
    names = [(file.stem, AVOIDED)]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef):
            names.append((node.name, AVOIDED_IN_CLASSES))
        elif isinstance(node, FUNCTION):
            names.append((node.name, AVOIDED))
        elif isinstance(node, ast.arg):
            names.append((node.arg, AVOIDED))
    for name, avoided in names:
        yield from avoided_in(name, {word: avoided[word] for word in avoided.keys() - foreign})


def speaks_the_glossary_in_sql(file: File) -> Iterator[str]:
    for name in sorted(set(re.findall(r"\w+", file.text)) - FOREIGN_IN_SQL):
        yield from avoided_in(name, AVOIDED)


def speaks_the_glossary_in_prose(file: File) -> Iterator[str]:
    yield from avoided_phrases(file.text)


def speaks_the_glossary_to_users(file: File) -> Iterator[str]:
    """Help texts, docstrings and messages: whatever is text in a program."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from avoided_phrases(node.value)


def avoided_in(name: str, avoided: Mapping[str, str]) -> Iterator[str]:
    for word in words_of(name):
        if word in avoided:
            yield f"{name} says {word}, which the glossary avoids: say {avoided[word]}"


def avoided_phrases(text: str) -> Iterator[str]:
    unwrapped = " ".join(text.split())
    for pattern, instead in PROSE_WORDS.items():
        for found in pattern.finditer(unwrapped):
            yield f"it says {found[0]!r}, which the glossary avoids: say {instead}"


def words_of(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, as they stand and in the singular."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    words = spaced.lower().split("_")
    return sorted({*words, *(word.removesuffix("s") for word in words)})
