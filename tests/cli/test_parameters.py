"""Durations and queues as they are typed."""

from datetime import timedelta

import click
import pytest

from tidemill.cli.parameters import to_duration, to_queues, to_states


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("default", ("default",)),
        ("payments,default", ("payments", "default")),
        ("payments = 3, default=1", {"payments": 3, "default": 1}),
    ],
)
def test_names_alone_are_strict_and_names_with_weights_are_shared(text, queues):
    assert to_queues(text) == queues


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty name"),
        ("a,,b", "empty name"),
        ("=3", "empty name"),
        ("a,a", "twice"),
        ("a=1,b", "some none"),
        ("a=0", "whole number"),
        ("a=-1", "whole number"),
        ("a=1.5", "whole number"),
        ("a=", "whole number"),
        ("a=²", "whole number"),
    ],
)
def test_queues_that_cannot_work_are_refused_with_the_reason(text, says):
    with pytest.raises(click.BadParameter, match=says):
        to_queues(text)


def test_a_duration_needs_its_unit():
    assert to_duration("1m30s") == timedelta(seconds=90)
    with pytest.raises(click.BadParameter, match="'90' is not a duration with its unit"):
        to_duration("90")


def test_states_stand_between_commas():
    assert to_states("dead, quarantined") == ("dead", "quarantined")
    with pytest.raises(click.BadParameter, match="'dead,lost' names a state that does not exist"):
        to_states("dead,lost")
