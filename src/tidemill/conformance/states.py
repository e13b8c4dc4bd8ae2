"""States: every edge of the table is walked, and no operation takes another one (clause B)."""

from __future__ import annotations

import pytest

from tidemill.conformance.endstates import ENDED
from tidemill.conformance.moves import BEFORE, MOVES
from tidemill.conformance.scenes import BROKEN, claim_one, details, register, requeue
from tidemill.conformance.walks import UNREACHABLE, WALKS
from tidemill.core.transitions import TABLE, By, Edge
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.values import causes
from tidemill.values.ids import JobId
from tidemill.values.states import JobState

EDGES = [(edge, by) for edge, ways in TABLE.items() for by in sorted(ways)]


def stands(store: Store, job_id: JobId) -> JobState | None:
    """Where a job stands; None if it is not there."""
    found = store.perform_sync(GetJob(job_id))
    return found.record.state if found else None


def test_every_edge_of_the_table_has_a_walk() -> None:
    """B3."""
    assert {*WALKS, *UNREACHABLE} == set(EDGES)


@pytest.mark.parametrize(
    ("edge", "by"),
    [each for each in EDGES if each not in UNREACHABLE],
    ids=lambda value: value.value if isinstance(value, By) else "-".join(map(str, value)),
)
def test_every_edge_is_taken_as_the_table_says(
    store: Store, clock: VirtualClock, edge: Edge, by: By
) -> None:
    """B1, B3."""
    before, after = edge
    walk = WALKS[edge, by](store, clock)
    job_id = next(walk)
    assert stands(store, job_id) is before
    assert next(walk, None) is None
    assert stands(store, job_id) is after


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", BEFORE)
def test_no_operation_takes_a_job_along_an_edge_that_does_not_exist(
    store: Store, clock: VirtualClock, state: JobState, move: str
) -> None:
    """B1."""
    job = BEFORE[state](store)
    assert stands(store, job.id) is state
    ways, act = MOVES[move]
    act(store, clock, job)
    after = stands(store, job.id)
    assert after is not None
    assert after is state or ways & TABLE.get((state, after), frozenset())


@pytest.mark.parametrize("move", [move for move in MOVES if move != "requeue"])
@pytest.mark.parametrize("state", ENDED)
def test_a_terminal_state_stays_whatever_is_done_but_a_requeue(
    store: Store, clock: VirtualClock, state: JobState, move: str
) -> None:
    """B1: not even its row changes; a rejected report leaves its own record, no more."""
    job = BEFORE[state](store)
    before = details(store, job.id)
    MOVES[move][1](store, clock, job)
    after = details(store, job.id)
    assert after.record == before.record
    assert (after.output, after.tags, after.payload) == (
        before.output,
        before.tags,
        before.payload,
    )
    assert [record for record in after.attempts if not record.stale] == list(before.attempts)


def test_succeeded_has_no_exit(store: Store, clock: VirtualClock) -> None:
    """B1."""
    job = BEFORE[JobState.SUCCEEDED](store)
    for _, act in MOVES.values():
        act(store, clock, job)
        assert stands(store, job.id) is JobState.SUCCEEDED


@pytest.mark.parametrize("state", ENDED)
def test_a_terminal_state_records_its_instant_and_its_cause(
    store: Store, clock: VirtualClock, state: JobState
) -> None:
    """B2."""
    record = details(store, ENDED[state](store)).record
    assert record.finished_at == clock()
    assert (
        record.cause
        == {
            JobState.SUCCEEDED: None,
            JobState.CANCELLED: causes.operator("miller"),
            JobState.DEAD: causes.DISCARDED,
            JobState.QUARANTINED: causes.NO_HANDLER,
        }[state]
    )


def test_a_quarantined_job_keeps_why_it_could_not_be_routed(store: Store) -> None:
    """B2, E5."""
    ended = details(store, ENDED[JobState.QUARANTINED](store))
    (record,) = ended.attempts
    assert record.error is not None
    assert record.error.message == BROKEN.message
    requeue(store, ended.record.id)
    assert claim_one(store, register(store)).attempt == record.attempt + 1
