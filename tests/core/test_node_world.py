"""Nodes and pulses against the memory store, in virtual time and with faults (C4–C9, D4–D5, M3)."""

from dataclasses import replace

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


EVERY_TIME_THE_SAME = settings(derandomize=True, database=None, deadline=None)


@settings(EVERY_TIME_THE_SAME, max_examples=150)
@given(PLANS)
def test_whatever_fails_every_job_ends_once_and_nothing_runs_that_nobody_holds(plan: Plan) -> None:
    World(replace(plan, drains=min(plan.drains, plan.machines - 1))).run()


@settings(EVERY_TIME_THE_SAME, max_examples=60)
@given(PLANS, st.integers(1, 3))
def test_an_attempt_whose_end_the_store_refuses_to_record_is_counted_all_the_same(
    plan: Plan, guilty: int
) -> None:
    """Nothing is run for ever for nothing (D6, E2)."""
    World(replace(plan, drains=0, guilty=min(guilty, plan.jobs))).run()


@settings(EVERY_TIME_THE_SAME, max_examples=80)
@given(PLANS)
def test_when_nothing_fails_no_attempt_lapses_although_workers_end(plan: Plan) -> None:
    calm = replace(plan, fault_rate=0.0, pauses=0, machines=plan.machines + 1)
    World(replace(calm, drains=plan.machines, jobs=plan.jobs * 2)).run()
