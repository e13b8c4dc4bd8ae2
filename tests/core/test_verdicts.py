"""What an ended attempt becomes: budgets, cancel requests, and every verdict (clauses B, E, G2)."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.retry import backoff
from tidemill.core.transitions import TABLE
from tidemill.core.verdicts import Resolution, Standing, resolve, tries_spent
from tidemill.values import causes
from tidemill.values.ids import Attempt, JobId
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

S = JobState
JOB = JobId(UUID(int=7))
SECOND = timedelta(seconds=1)
NOTHING = timedelta(0)
PLAIN = Standing(
    job_id=JOB,
    attempt=Attempt(3),
    retry=Retry(),
    failures=0,
    failures_base=0,
    lapses=0,
    lapses_base=0,
    cancel_requested=None,
)
ERROR = ErrorInfo("shop.CardDeclined", "no", ancestry=("shop.CardDeclined", "ValueError"))


def ended(verdict: Verdict, standing: Standing = PLAIN, **rest) -> Resolution:
    outcome = Outcome(job_id=standing.job_id, attempt=standing.attempt, verdict=verdict, **rest)
    return resolve(standing, outcome)


def standing(retry: Retry = PLAIN.retry, **rest) -> Standing:
    return replace(PLAIN, retry=retry, **rest)


def test_a_success_succeeds() -> None:
    assert ended(Verdict.SUCCEEDED) == Resolution(state=S.SUCCEEDED)


def test_a_success_succeeds_although_a_cancel_was_requested() -> None:
    asked = standing(cancel_requested="ada")
    assert ended(Verdict.SUCCEEDED, asked) == Resolution(state=S.SUCCEEDED)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.SUCCEEDED])
def test_any_other_end_while_a_cancel_is_requested_is_cancelled(verdict) -> None:
    resolution = ended(verdict, standing(Retry.never(), cancel_requested="ada"), delay=SECOND)
    assert resolution == Resolution(
        state=S.CANCELLED,
        cause="operator:ada",
        failed=int(verdict in {Verdict.FAILED, Verdict.DISCARDED}),
        lapsed=int(verdict is Verdict.LAPSED),
    )


def test_a_failure_with_budget_left_waits_out_its_backoff() -> None:
    wait = backoff(Retry(), 1, JOB, Attempt(3))
    assert ended(Verdict.FAILED) == Resolution(state=S.SCHEDULED, delay=wait, failed=1)


def test_a_failure_may_bring_its_own_wait() -> None:
    later = Resolution(state=S.SCHEDULED, delay=SECOND, failed=1)
    assert ended(Verdict.FAILED, delay=SECOND) == later
    at_once = Resolution(state=S.READY, delay=NOTHING, failed=1)
    assert ended(Verdict.FAILED, delay=NOTHING) == at_once


@pytest.mark.parametrize(("failures", "state"), [(0, S.SCHEDULED), (1, S.SCHEDULED), (2, S.DEAD)])
def test_the_last_failure_of_the_budget_is_the_end(failures, state) -> None:
    resolution = ended(Verdict.FAILED, standing(Retry(max_attempts=3), failures=failures))
    assert (resolution.state, resolution.failed) == (state, 1)
    assert resolution.cause == (causes.ATTEMPTS_EXHAUSTED if state is S.DEAD else None)


def test_a_failure_that_asks_for_a_wait_spends_the_budget_all_the_same() -> None:
    assert ended(Verdict.FAILED, standing(Retry.never()), delay=SECOND).state is S.DEAD


def test_failures_before_the_last_requeue_do_not_count() -> None:
    fresh = standing(Retry(max_attempts=2), failures=7, failures_base=7)
    assert ended(Verdict.FAILED, fresh).state is S.SCHEDULED
    assert ended(Verdict.FAILED, replace(fresh, failures=8)).state is S.DEAD


def test_lapses_spend_the_budget_of_a_failure_only_where_they_count() -> None:
    spent = {"lapses": 4, "lapses_base": 1, "failures": 1}
    free = standing(Retry(max_attempts=5), **spent)
    counted = standing(Retry(max_attempts=5, count_lapses=True), **spent)
    assert (tries_spent(free), tries_spent(counted)) == (1, 4)
    assert ended(Verdict.FAILED, free).state is S.SCHEDULED
    assert ended(Verdict.FAILED, counted).cause == causes.ATTEMPTS_EXHAUSTED


def test_the_backoff_grows_with_every_ended_try_a_lapse_as_much_as_a_failure() -> None:
    policy = Retry(jitter=0, max_attempts=99)
    mixed = standing(policy, failures=3, failures_base=1, lapses=2, lapses_base=1)
    expected = backoff(policy, 4, JOB, Attempt(3))
    assert ended(Verdict.FAILED, mixed).delay == expected == 40 * SECOND
    assert ended(Verdict.LAPSED, mixed).delay == expected


def test_a_discard_is_the_end_and_is_counted() -> None:
    dead = Resolution(state=S.DEAD, cause=causes.DISCARDED, failed=1)
    assert ended(Verdict.DISCARDED) == dead


@pytest.mark.parametrize("name", ["shop.CardDeclined", "ValueError"])
def test_an_exception_is_discarded_by_its_name_or_by_that_of_an_ancestor(name) -> None:
    resolution = ended(Verdict.FAILED, standing(Retry(discard_on=(name,))), error=ERROR)
    assert (resolution.state, resolution.cause) == (S.DEAD, causes.DISCARDED)


def test_an_exception_that_no_rule_names_is_retried() -> None:
    policy = Retry(discard_on=("KeyError",))
    assert ended(Verdict.FAILED, standing(policy), error=ERROR).state is S.SCHEDULED
    assert ended(Verdict.FAILED, standing(policy)).state is S.SCHEDULED


@pytest.mark.parametrize("name", ["shop.CardDeclined", "ValueError"])
def test_where_retried_exceptions_are_named_only_they_are_retried(name) -> None:
    assert (
        ended(Verdict.FAILED, standing(Retry(retry_on=(name,))), error=ERROR).state is S.SCHEDULED
    )
    for error in (ErrorInfo("OSError", ""), None):
        resolution = ended(Verdict.FAILED, standing(Retry(retry_on=(name,))), error=error)
        assert (resolution.state, resolution.cause) == (S.DEAD, causes.NOT_RETRYABLE)


def test_a_handler_that_asks_for_another_try_is_given_one_whatever_its_exception_is_called() -> (
    None
):
    policy = Retry(retry_on=("OSError",))
    resolution = ended(Verdict.FAILED, standing(policy), error=ERROR, delay=SECOND)
    assert resolution == Resolution(state=S.SCHEDULED, delay=SECOND, failed=1)


def test_a_discarded_exception_wins_over_a_retried_one() -> None:
    policy = Retry(retry_on=("ValueError",), discard_on=("shop.CardDeclined",))
    assert ended(Verdict.FAILED, standing(policy), error=ERROR).cause == causes.DISCARDED


def test_a_stop_that_nobody_requested_is_a_failure() -> None:
    resolution = ended(Verdict.CANCELLED)
    assert (resolution.state, resolution.failed) == (S.SCHEDULED, 1)
    assert ended(Verdict.CANCELLED, standing(Retry.never())).state is S.DEAD


@pytest.mark.parametrize(
    ("given_cause", "kept"), [(None, causes.NO_HANDLER), (causes.PAYLOAD, causes.PAYLOAD)]
)
def test_what_cannot_be_routed_is_quarantined_with_the_reason(given_cause, kept) -> None:
    resolution = ended(Verdict.UNROUTABLE, cause=given_cause)
    assert resolution == Resolution(state=S.QUARANTINED, cause=kept)


def test_a_release_costs_nothing_and_leaves_the_due_instant_alone() -> None:
    assert ended(Verdict.RELEASED, standing(Retry.never())) == Resolution(state=S.READY)


def test_a_snooze_costs_nothing_and_is_due_when_it_asked() -> None:
    spent = standing(Retry.never())
    later = Resolution(state=S.SCHEDULED, delay=SECOND)
    assert ended(Verdict.SNOOZED, spent, delay=SECOND) == later
    for nothing in (None, NOTHING):
        at_once = Resolution(state=S.READY, delay=NOTHING)
        assert ended(Verdict.SNOOZED, spent, delay=nothing) == at_once


def test_a_lapse_waits_like_a_failure_and_spends_no_budget() -> None:
    wait = backoff(Retry.never(), 1, JOB, Attempt(3))
    again = Resolution(state=S.READY, delay=wait, lapsed=1)
    assert ended(Verdict.LAPSED, standing(Retry.never())) == again
    assert ended(Verdict.LAPSED).state is S.SCHEDULED


def test_a_lapse_spends_the_budget_where_it_counts() -> None:
    policy = Retry(max_attempts=2, count_lapses=True)
    assert ended(Verdict.LAPSED, standing(policy)).state is S.SCHEDULED
    resolution = ended(Verdict.LAPSED, standing(policy, failures=1))
    assert resolution == Resolution(state=S.DEAD, cause=causes.ATTEMPTS_EXHAUSTED, lapsed=1)


@pytest.mark.parametrize(("lapses", "state"), [(9, S.SCHEDULED), (10, S.DEAD)])
def test_the_lapse_over_the_interruption_limit_is_poison(lapses, state) -> None:
    resolution = ended(Verdict.LAPSED, standing(lapses=lapses + 5, lapses_base=5))
    assert (resolution.state, resolution.lapsed) == (state, 1)
    assert resolution.cause == (causes.POISON if state is S.DEAD else None)


def test_poison_is_named_before_a_budget_that_ends_with_the_same_lapse() -> None:
    policy = Retry(max_attempts=1, count_lapses=True, interruption_limit=0)
    assert ended(Verdict.LAPSED, standing(policy)).cause == causes.POISON


counters = st.integers(0, 20)
standings = st.builds(
    lambda policy, fails, lapses, base, asked: standing(
        policy,
        failures=fails + base,
        failures_base=base,
        lapses=lapses + base,
        lapses_base=base,
        cancel_requested=asked,
    ),
    st.sampled_from(
        [Retry(), Retry.never(), Retry.immediate(), Retry(count_lapses=True, interruption_limit=1)]
    ),
    counters,
    counters,
    counters,
    st.sampled_from([None, "ada"]),
)
waits = st.none() | st.timedeltas(NOTHING, timedelta(days=9))


@given(standings, st.sampled_from(Verdict), waits)
def test_whatever_ends_takes_an_edge_of_the_table_and_a_cause_exactly_if_it_ends_badly(
    where, verdict, wait
) -> None:
    resolution = ended(verdict, where, delay=wait)
    assert (S.RUNNING, resolution.state) in TABLE
    badly = resolution.state.terminal and resolution.state is not S.SUCCEEDED
    assert (resolution.cause is not None) is badly
    assert resolution.failed + resolution.lapsed <= 1
    if resolution.state is S.SCHEDULED:
        assert resolution.delay is not None
        assert resolution.delay > NOTHING


@given(st.integers(1, 30), st.booleans(), st.lists(st.booleans(), max_size=80))
def test_no_job_outlives_its_budget_or_its_interruption_limit(tries, counts, fails) -> None:
    where = standing(Retry(max_attempts=tries, count_lapses=counts, interruption_limit=5))
    for failed in fails:
        resolution = ended(Verdict.FAILED if failed else Verdict.LAPSED, where)
        where = replace(
            where,
            failures=where.failures + resolution.failed,
            lapses=where.lapses + resolution.lapsed,
        )
        over = tries_spent(where) >= tries or where.lapses > 5
        assert (resolution.state is S.DEAD) is over
        if over:
            break


def test_an_explicit_wait_is_not_discarded_by_a_rule_for_exceptions() -> None:
    policy = Retry(discard_on=("ValueError",))
    resolution = ended(Verdict.FAILED, standing(policy), error=ERROR, delay=SECOND)
    assert resolution == Resolution(state=S.SCHEDULED, delay=SECOND, failed=1)
