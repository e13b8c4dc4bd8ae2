"""Backoff: bounds, growth, and the same answer for the same attempt (clause E1)."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.retry import backoff
from tidemill.errors import ConfigurationError
from tidemill.values.ids import Attempt, JobId
from tidemill.values.retry import Backoff, Retry, exception_name

SECOND = timedelta(seconds=1)
JOB = JobId(UUID(int=7))
ids = st.uuids().map(JobId)
attempts = st.integers(1, 10_000).map(Attempt)
tries = st.integers(1, 200)
waits = st.timedeltas(timedelta(0), timedelta(days=400))


def waits_of(policy: Retry, count: int) -> list[float]:
    return [
        backoff(policy, spent, JOB, Attempt(spent)).total_seconds() for spent in range(1, count + 1)
    ]


def test_the_default_policy_doubles_from_five_seconds_to_an_hour() -> None:
    policy = Retry(jitter=0)
    assert waits_of(policy, 12) == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    assert (Retry().max_attempts, Retry().jitter) == (5, 0.1)


def test_a_fixed_policy_always_waits_the_same() -> None:
    assert waits_of(Retry.fixed(3 * SECOND, jitter=0), 4) == [3, 3, 3, 3]


def test_a_list_is_followed_and_its_last_wait_repeats() -> None:
    policy = Retry.listed(SECOND, 9 * SECOND, 4 * SECOND, jitter=0)
    assert waits_of(policy, 5) == [1, 9, 4, 4, 4]
    assert policy.max_attempts == 4


def test_no_backoff_waits_for_nothing() -> None:
    assert waits_of(Retry.immediate(), 3) == [0, 0, 0]


def test_a_factor_of_one_never_grows() -> None:
    assert waits_of(Retry.exponential(first=SECOND, factor=1, jitter=0), 3) == [1, 1, 1]


@given(st.tuples(st.floats(1, 10), waits, waits, st.floats(0, 1)), tries, ids, attempts)
def test_a_wait_stays_within_its_jitter_of_a_base_that_the_cap_bounds(
    shape, spent, job_id, attempt
) -> None:
    factor, first, cap, jitter = shape
    policy = Retry.exponential(first=first, factor=factor, cap=cap, jitter=jitter)
    calm = Retry.exponential(first=first, factor=factor, cap=cap, jitter=0)
    base = backoff(calm, spent, job_id, attempt).total_seconds()
    wait = backoff(policy, spent, job_id, attempt).total_seconds()
    rounding = 1e-5
    assert min(first, cap).total_seconds() - rounding <= base <= cap.total_seconds() + rounding
    assert base * (1 - jitter) - rounding <= wait <= base * (1 + jitter) + rounding
    assert wait >= 0


@given(st.floats(1, 10), waits, waits, tries)
def test_a_base_never_shrinks_from_one_try_to_the_next(factor, first, cap, spent) -> None:
    policy = Retry.exponential(first=first, factor=factor, cap=cap, jitter=0)
    now, later = (backoff(policy, count, JOB, Attempt(1)) for count in (spent, spent + 1))
    assert now <= later


@given(tries, ids, attempts)
def test_the_same_attempt_always_waits_the_same(spent, job_id, attempt) -> None:
    same = JobId(UUID(bytes=job_id.bytes))
    assert backoff(Retry(), spent, job_id, attempt) == backoff(Retry(), spent, same, attempt)


def test_the_jitter_of_an_attempt_does_not_change_between_versions() -> None:
    policy = Retry.fixed(timedelta(seconds=100), jitter=1)
    seconds = [round(backoff(policy, 1, JOB, Attempt(n)).total_seconds(), 3) for n in (1, 2, 3)]
    assert seconds == [38.801, 127.03, 67.126]


def test_jitter_spreads_jobs_and_attempts_around_the_base() -> None:
    policy = Retry.fixed(timedelta(seconds=100), jitter=0.5)
    jobs = [backoff(policy, 1, JobId(UUID(int=n)), Attempt(1)) for n in range(500)]
    turns = [backoff(policy, 1, JOB, Attempt(n)) for n in range(1, 501)]
    for spread in (jobs, turns):
        seconds = [wait.total_seconds() for wait in spread]
        assert len(set(seconds)) > 490
        assert 95 < sum(seconds) / len(seconds) < 105
        assert min(seconds) < 55
        assert max(seconds) > 145


@pytest.mark.parametrize(
    "policy",
    [
        Retry.exponential(first=timedelta(days=1), cap=timedelta.max),
        Retry.exponential(first=timedelta(days=1), factor=1e300, cap=timedelta.max),
        Retry.exponential(first=timedelta.max, cap=timedelta.max),
        Retry.fixed(timedelta.max),
        Retry.listed(timedelta.max),
    ],
)
def test_no_wait_leaves_the_calendar_whatever_the_policy_says(policy) -> None:
    century = timedelta(days=36_525)
    assert century * 0.9 <= backoff(policy, 1_000_000, JOB, Attempt(1)) <= century


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"interruption_limit": -1},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"jitter": float("nan")},
        {"factor": 0.9},
        {"factor": float("inf")},
        {"factor": float("nan")},
        {"cap": -SECOND},
        {"delays": (SECOND, -SECOND)},
        {"delays": ()},
        {"backoff": Backoff.FIXED, "delays": ()},
        {"backoff": Backoff.LISTED, "delays": ()},
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(wrong) -> None:
    with pytest.raises(ConfigurationError):
        Retry(**wrong)


def test_an_exception_of_the_main_program_has_one_name_in_all_its_processes() -> None:
    again = type("Busy", (Exception,), {"__module__": "__mp_main__"})
    assert exception_name(again) == "__main__.Busy"


def test_exceptions_are_known_by_module_and_name() -> None:
    class Broken(Exception): ...

    assert exception_name(ValueError) == "ValueError"
    assert exception_name(ConfigurationError) == "tidemill.errors.ConfigurationError"
    assert exception_name(Broken).endswith("<locals>.Broken")
    policy = Retry.exponential(retry_on=(OSError, "shop.Busy"), discard_on=(KeyError,))
    assert policy.retry_on == ("OSError", "shop.Busy")
    assert policy.discard_on == ("KeyError",)
