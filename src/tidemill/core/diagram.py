"""The state machine as a page of documentation, made from the table (clause B3)."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.core.transitions import TABLE, Edge
from tidemill.values.states import TERMINAL, JobState

_INTRODUCTION = """\
# The states of a job

This page is made from the table in `core/transitions.py`, and a test keeps it so. An edge that is
not here cannot be taken.
"""


def page() -> str:
    """The page, in Markdown: a Mermaid diagram and the table of edges."""
    return "\n".join([_INTRODUCTION, *_diagram(), "", *_edges(), ""])


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    for (before, after), ways in TABLE.items():
        label = ", ".join(sorted(way.value for way in ways))
        yield f"    {_node(before)} --> {after.value}: {label}"
    for state in JobState:
        if state in TERMINAL:
            yield f"    {state.value} --> [*]"
    yield "```"


def _edges() -> Iterator[str]:
    yield "| from | to | by |"
    yield "|---|---|---|"
    for edge, ways in TABLE.items():
        yield _line(edge, sorted(way.value for way in ways))


def _line(edge: Edge, ways: list[str]) -> str:
    before, after = edge
    return f"| {'–' if before is None else before.value} | {after.value} | {', '.join(ways)} |"


def _node(state: JobState | None) -> str:
    return "[*]" if state is None else state.value
