"""The page of states is the table in the code."""

from pathlib import Path

from tidemill.core.diagram import page
from tidemill.core.transitions import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "states.md"


def test_the_page_of_states_is_made_from_the_table():
    assert PAGE.read_text() == page(), (
        "write it again: "
        "python -c 'from tidemill.core.diagram import page; print(page(), end=\"\")' > " + str(PAGE)
    )


def test_every_edge_is_drawn_once():
    arrows = [line for line in page().splitlines() if "-->" in line and "--> [*]" not in line]
    assert len(arrows) == len(TABLE)
