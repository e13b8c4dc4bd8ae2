"""Sharing slots between queues: strict and weighted (clause J5)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.dispatch import DispatchPolicy, Strict, Weighted, policy_for
from tidemill.errors import ConfigurationError
from tidemill.values.exchange import Share

weights = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3), st.integers(1, 40), min_size=1
)
calls = st.lists(st.integers(0, 30), max_size=30)


def counted(policy: DispatchPolicy, slots: int) -> Counter[str]:
    return Counter({share.queue: share.limit for share in policy.share(slots)})


def test_strict_offers_every_slot_to_each_queue_in_turn() -> None:
    policy = Strict(("a", "b"))
    assert policy.share(7) == (Share("a", 7), Share("b", 7))
    assert policy.share(7) == (Share("a", 7), Share("b", 7))


def test_weighted_turns_smoothly() -> None:
    policy = Weighted({"a": 5, "b": 1, "c": 1})
    turns = [share.queue for _ in range(7) for share in policy.share(1) if share.limit]
    assert turns == ["a", "a", "b", "a", "c", "a", "a"]


def test_the_queue_whose_turn_comes_first_is_tried_first() -> None:
    policy = Weighted({"a": 1, "b": 3})
    assert policy.share(1) == (Share("b", 1), Share("a", 0))
    assert policy.share(1) == (Share("a", 1), Share("b", 0))
    assert policy.share(2) == (Share("b", 2), Share("a", 0))


@given(weights, st.integers(1, 5))
def test_after_a_whole_turn_of_the_wheel_each_queue_has_had_its_weight(
    given_weights, rounds
) -> None:
    policy = Weighted(given_weights)
    for _ in range(rounds):
        assert counted(policy, sum(given_weights.values())) == Counter(given_weights)


@given(weights, st.integers(0, 300))
def test_no_queue_is_ahead_of_its_part_by_a_slot(given_weights, slots) -> None:
    total = sum(given_weights.values())
    for queue, had in counted(Weighted(given_weights), slots).items():
        assert had < slots * given_weights[queue] / total + 1


@given(weights, calls)
def test_how_the_slots_are_cut_into_calls_changes_nothing(given_weights, slots) -> None:
    cut, whole = Weighted(given_weights), Weighted(given_weights)
    parts = sum((counted(cut, part) for part in slots), Counter())
    assert parts == +counted(whole, sum(slots))


@given(weights, calls)
def test_every_slot_is_given_away_and_every_queue_is_named_once(given_weights, slots) -> None:
    policy = Weighted(given_weights)
    for count in slots:
        shares = policy.share(count)
        assert sum(share.limit for share in shares) == count
        assert sorted(share.queue for share in shares) == sorted(given_weights)
        limits = [share.limit > 0 for share in shares]
        assert limits == sorted(limits, reverse=True), "a queue without a share is tried last"


@given(weights, calls)
def test_the_same_calls_give_the_same_shares(given_weights, slots) -> None:
    first, second = Weighted(given_weights), Weighted(dict(given_weights))
    assert [first.share(count) for count in slots] == [second.share(count) for count in slots]


@given(weights)
def test_no_queue_starves(given_weights) -> None:
    policy = Weighted(given_weights)
    assert set(+counted(policy, sum(given_weights.values()))) == set(given_weights)


def test_a_list_of_names_is_strict_and_names_with_weights_are_weighted() -> None:
    assert policy_for(["b", "a"]) == Strict(("b", "a"))
    policy = policy_for({"b": 2, "a": 1})
    assert isinstance(policy, Weighted)
    assert policy.queues == ("b", "a")


@pytest.mark.parametrize("queues", [[], {}, ["a", ""], ["a", "a"], {"a": 0}, {"a": 1, "b": -1}])
def test_queues_that_cannot_be_served_are_refused(queues) -> None:
    with pytest.raises(ConfigurationError):
        policy_for(queues)
