"""The state machine as a table: what is in it, and what is not (clause B)."""

from itertools import product

import pytest

from tidemill.core.transitions import TABLE, By, check, sources
from tidemill.errors import IllegalTransition
from tidemill.values.states import REQUEUEABLE, TERMINAL, JobState

STARTS = [None, *JobState]
LEGAL = [(before, after, by) for (before, after), ways in TABLE.items() for by in sorted(ways)]
ILLEGAL = [move for move in product(STARTS, JobState, By) if move not in LEGAL]


def reachable() -> set[JobState | None]:
    found: set[JobState | None] = {None}
    while True:
        ends = {after for before, after in TABLE if before in found}
        if ends <= found:
            return found - {None}
        found |= ends


@pytest.mark.parametrize(("before", "after", "by"), LEGAL)
def test_an_edge_of_the_table_answers_where_it_leads(before, after, by) -> None:
    assert check(before, after, by) is after


def test_every_other_move_is_a_programming_error_and_raises() -> None:
    assert len(LEGAL) + len(ILLEGAL) == len(STARTS) * len(JobState) * len(By)
    for before, after, by in ILLEGAL:
        with pytest.raises(IllegalTransition, match=by.value):
            check(before, after, by)


def test_an_illegal_move_is_named_whole() -> None:
    with pytest.raises(IllegalTransition, match="from succeeded to ready by requeue"):
        check(JobState.SUCCEEDED, JobState.READY, By.REQUEUE)
    with pytest.raises(IllegalTransition, match="from no job to running by claim"):
        check(None, JobState.RUNNING, By.CLAIM)


def test_succeeded_has_no_exit() -> None:
    assert [edge for edge in TABLE if edge[0] is JobState.SUCCEEDED] == []


def test_only_a_requeue_leads_out_of_a_terminal_state() -> None:
    exits = {edge: ways for edge, ways in TABLE.items() if edge[0] in TERMINAL}
    assert set(exits) == {(state, JobState.READY) for state in REQUEUEABLE}
    assert set(exits.values()) == {frozenset({By.REQUEUE})}


def test_only_a_claim_leads_to_running() -> None:
    into = {edge: ways for edge, ways in TABLE.items() if edge[1] is JobState.RUNNING}
    assert into == {(JobState.READY, JobState.RUNNING): frozenset({By.CLAIM})}


def test_every_job_starts_by_enqueue_and_enqueue_starts_nothing_else() -> None:
    for (before, _), ways in TABLE.items():
        assert (before is None) is (By.ENQUEUE in ways)


def test_every_state_but_awaiting_can_be_reached() -> None:
    assert reachable() == set(JobState) - {JobState.AWAITING}


def test_no_state_keeps_a_job_for_ever_but_a_terminal_one() -> None:
    exits = {before for before, _ in TABLE if before}
    assert reachable() - exits == {JobState.SUCCEEDED}


def test_no_edge_stays_where_it_is_or_has_no_way() -> None:
    for (before, after), ways in TABLE.items():
        assert before is not after
        assert ways


@pytest.mark.parametrize(("after", "by"), sorted({(after, by) for _, after, by in LEGAL}))
def test_the_sources_of_a_move_are_the_states_that_the_table_lets_it_leave(after, by) -> None:
    expected = {before for before, end, way in LEGAL if (end, way) == (after, by) and before}
    assert sources(after, by) == expected


def test_a_move_that_the_table_does_not_have_comes_from_nowhere() -> None:
    assert sources(JobState.SUCCEEDED, By.REQUEUE) == frozenset()
