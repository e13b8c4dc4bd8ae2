"""The statements of a dialect: named, loaded once, filled in, and compiled.

`statements/common/<topic>.sql` holds what all databases share, `statements/<dialect>/<topic>.sql`
what one of them spells differently. A statement begins with `-- name: claim_ready`. In its text
`{{ready}}` is a fragment of the dialect, `:name` a parameter, and `:ids*` a list, which may stand
in an `IN (…)` only. Where a dialect has arrays it becomes `= ANY(…)`; elsewhere it is filled up to
a round length by repeating its last value, so that a database prepares a dozen texts of it and not
one for every length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, cast

from tidemill.sql.dialects.dialect import Dialect
from tidemill.sql.migrations import migrations

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
_LIST = re.compile(r"IN \(:(\w+)\*\)")
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)(\*?)")

CLOCK_PARAMETER: Final = "clock"
"""What a statement calls the store's time, where that is not the database's own: the driver gives
it, and no program does."""

Parameters = Mapping[str, object]
Given = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement with placeholders: `lists` gives the length of each list in it, if any."""

    sql: str
    names: tuple[str, ...]
    lists: Mapping[str, int]


class Catalogue:
    """Every statement of one dialect, ready to be bound."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._texts = load(dialect)
        self._plain: dict[str, Compiled] = {}
        self._with_lists: dict[tuple[str, tuple[int, ...]], Compiled] = {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._texts)

    def bind(
        self, name: str, parameters: Parameters, clock: Given = lambda: None
    ) -> tuple[str, tuple[object, ...]]:
        """The text of a statement and its encoded values, in the order of its placeholders."""
        compiled = self._compiled(name, parameters)
        encode = self.dialect.encode
        if self.dialect.arrays:
            given = [
                clock() if key == CLOCK_PARAMETER else parameters[key] for key in compiled.names
            ]
            return compiled.sql, tuple([encode(value) for value in given])
        values: list[object] = []
        for key in compiled.names:
            value = clock() if key == CLOCK_PARAMETER else parameters[key]
            if not isinstance(value, tuple):
                values.append(encode(value))
                continue
            encoded = [encode(element) for element in cast("tuple[object, ...]", value)]
            values += encoded + encoded[-1:] * (compiled.lists[key] - len(encoded))
        return compiled.sql, tuple(values)

    def bind_each(
        self, name: str, rows: Sequence[Parameters]
    ) -> tuple[str, list[tuple[object, ...]]]:
        """The text of a statement without lists, and the encoded values of each of its runs."""
        compiled = self._compiled(name, {})
        encode, names = self.dialect.encode, compiled.names
        return compiled.sql, [tuple([encode(row[key]) for key in names]) for row in rows]

    def bind_columns(self, name: str, rows: Sequence[Parameters]) -> tuple[str, tuple[object, ...]]:
        """The text of a statement that takes all rows at once, and an array for each column."""
        compiled = self._compiled(name, {})
        encode = self.dialect.encode
        return compiled.sql, tuple([[encode(row[key]) for row in rows] for key in compiled.names])

    def _compiled(self, name: str, parameters: Parameters) -> Compiled:
        plain = self._plain.get(name)
        if plain is not None:
            return plain
        text = self._texts[name]
        if self.dialect.arrays:
            return self._plain.setdefault(name, number_parameters(text))
        lengths = {
            key: round_length(len(cast("tuple[object, ...]", value)))
            for key, value in parameters.items()
            if isinstance(value, tuple)
        }
        if not lengths:
            return self._plain.setdefault(name, compile_statement(text, {}))
        shape = (name, tuple(lengths.values()))
        found = self._with_lists.get(shape)
        if found is None:
            found = compile_statement(text, lengths)
            self._with_lists[shape] = found
        return found


def round_length(length: int) -> int:
    """The length to which a list is filled up: the next power of two; an empty one stays empty."""
    return 0 if length == 0 else 1 << (length - 1).bit_length()


def compile_statement(text: str, lengths: Mapping[str, int]) -> Compiled:
    """Put `?` for each parameter, and as many as it is long for a list.

    Raises:
        KeyError: a list was not given as a tuple.
    """
    names: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        names.append(match[1])
        return ", ".join("?" * lengths[match[1]]) if match[2] else "?"

    return Compiled(_PARAMETER.sub(placeholder, text), tuple(names), dict(lengths))


def number_parameters(text: str) -> Compiled:
    """Put `$1` for each parameter, the same for the same name; a list is one array."""
    numbers: dict[str, int] = {}

    def placeholder(match: re.Match[str]) -> str:
        return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

    arrays = _LIST.sub(r"= ANY(:\1)", text)
    return Compiled(_PARAMETER.sub(placeholder, arrays), tuple(numbers), {})


def load(dialect: Dialect) -> dict[str, str]:
    """The texts of a dialect: the common ones, overlaid by its own, fragments filled in."""
    texts: dict[str, str] = {}
    statements = files("tidemill.sql").joinpath("statements")
    for folder in ("common", dialect.name):
        texts.update(_read(statements.joinpath(folder)))
    for step in migrations(dialect.name):
        texts.update(step.statements)
    return {name: fill(text, dialect.fragments) for name, text in texts.items()}


def fill(text: str, fragments: Mapping[str, str]) -> str:
    """Put the dialect's words for `{{fragments}}`, and drop comments."""
    return " ".join(_COMMENT.sub("", substitute(text, fragments)).split())


def substitute(text: str, fragments: Mapping[str, str]) -> str:
    """Put the dialect's words for `{{fragments}}`."""
    return _FRAGMENT.sub(lambda match: fragments[match[1]], text)


def _read(folder: Traversable) -> dict[str, str]:
    texts: dict[str, str] = {}
    if not folder.is_dir():
        return texts
    for topic in folder.iterdir():
        if topic.name.endswith(".sql"):
            parts = _NAME.split(topic.read_text(encoding="utf-8"))
            texts.update(zip(parts[1::2], parts[2::2], strict=True))
    return texts
