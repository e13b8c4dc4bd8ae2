"""Making a retry policy: durations as text, one set of options, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidemill.errors import ConfigurationError
from tidemill.values.retry import Backoff, Retry

MAKERS: dict[str, Callable[..., Retry]] = {
    "exponential": Retry.exponential,
    "fixed": lambda **options: Retry.fixed("5s", **options),
    "listed": lambda **options: Retry.listed("5s", **options),
    "immediate": Retry.immediate,
}


def test_every_wait_may_be_text_with_its_unit() -> None:
    grown = Retry.exponential(first="5s", cap="1h30m")
    assert (grown.delays, grown.cap) == ((timedelta(seconds=5),), timedelta(hours=1, minutes=30))
    assert Retry.fixed("250ms") == Retry.fixed(timedelta(milliseconds=250))
    assert Retry.listed("1s", timedelta(minutes=1)) == Retry.listed(
        timedelta(seconds=1), timedelta(minutes=1)
    )


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Retry.exponential(first="5"), "Retry first='5' is not a duration"),
        (lambda: Retry.exponential(cap="an hour"), "Retry cap='an hour' is not a duration"),
        (lambda: Retry.fixed("soon"), "Retry delay='soon' is not a duration"),
        (lambda: Retry.listed("1s", "2"), "Retry delay='2' is not a duration"),
    ],
)
def test_a_wait_that_is_no_duration_is_refused_by_name(
    make: Callable[[], Retry], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        make()


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_policy_that_retries_takes_the_same_options(maker: Callable[..., Retry]) -> None:
    policy = maker(
        max_attempts=7,
        count_lapses=True,
        interruption_limit=3,
        retry_on=(OSError, "shop.Busy"),
        discard_on=[KeyError],
    )
    assert policy.max_attempts == 7
    assert (policy.count_lapses, policy.interruption_limit) == (True, 3)
    assert (policy.retry_on, policy.discard_on) == (("OSError", "shop.Busy"), ("KeyError",))


def test_a_policy_that_never_retries_still_says_what_a_lapse_costs() -> None:
    policy = Retry.never(interruption_limit=0, count_lapses=True)
    assert (policy.max_attempts, policy.backoff) == (1, Backoff.NONE)
    assert (policy.count_lapses, policy.interruption_limit) == (True, 0)


def test_what_is_not_given_is_as_the_plain_policy_says() -> None:
    for maker in MAKERS.values():
        policy = maker(max_attempts=5)
        for name in ("count_lapses", "interruption_limit", "retry_on", "discard_on"):
            assert getattr(policy, name) == getattr(Retry(), name)


def test_an_option_that_does_not_exist_is_refused() -> None:
    options: dict[str, Any] = {"retries": 3}
    with pytest.raises(TypeError, match="retries"):
        Retry.immediate(**options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"max_attempts": 0},
            "max_attempts=0 cannot work: it must be a whole number, at least 1.",
        ),
        (
            {"interruption_limit": -1},
            "limit=-1 cannot work: it must be a whole number, at least 0.",
        ),
        ({"jitter": 1.5}, "jitter=1.5 cannot work: it must be between 0 and 1."),
        ({"factor": 0.5}, "factor=0.5 cannot work: it must be finite and at least 1."),
        ({"cap": timedelta(seconds=-1)}, "cap='-1 day, 23:59:59' cannot work"),
        ({"first": timedelta(seconds=-1)}, "delay='-1 day, 23:59:59' cannot work"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(options: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Retry.exponential(**options)
    assert sentence in str(caught.value)


def test_a_list_without_a_delay_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'listed' needs at least one delay"):
        Retry.listed()


@pytest.mark.parametrize("name", ["retry_on", "discard_on"])
@pytest.mark.parametrize(
    "kinds", ["ValueError", ValueError, ("a\ud800",), tuple(f"E{n}" for n in range(65))],
    ids=["text", "class", "no text", "too many"],
)  # fmt: skip
def test_exception_rules_that_cannot_mean_anything_are_refused(name, kinds):
    with pytest.raises(ConfigurationError, match=f"{name}=.* a tuple of exception classes"):
        Retry.immediate(**{name: kinds})


@pytest.mark.parametrize("name", ["max_attempts", "interruption_limit"])
@pytest.mark.parametrize("value", [2.5, "3", True])
def test_a_count_is_a_whole_number(name, value):
    with pytest.raises(ConfigurationError, match="whole number"):
        Retry(**{name: value})
