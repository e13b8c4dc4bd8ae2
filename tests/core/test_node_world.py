"""Nodes and pulses against the memory store, in virtual time and with faults (C4–C9, D4–D5, M3)."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.world import Plan, World

PLANS = st.builds(
    Plan,
    seed=st.integers(0, 2**32 - 1),
    machines=st.integers(1, 3),
    slots=st.integers(1, 4),
    jobs=st.integers(1, 12),
    fault_rate=st.sampled_from([0.0, 0.1, 0.3, 0.7]),
    pauses=st.integers(0, 3),
    drains=st.integers(0, 1),
    cancels=st.integers(0, 3),
    storm=st.sampled_from([5.0, 20.0]),
)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(PLANS)
def test_whatever_fails_every_job_ends_once_and_nothing_runs_that_nobody_holds(plan: Plan) -> None:
    World(plan if plan.machines > plan.drains else Plan(**{**vars(plan), "drains": 0})).run()
