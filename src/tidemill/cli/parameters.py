"""Option values that click has no type for: durations with a unit, and queues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from tidemill.errors import ConfigurationError
from tidemill.values.durations import duration
from tidemill.values.states import JobState

F = TypeVar("F", bound=Callable[..., Any])
Queues = tuple[str, ...] | dict[str, int]
"""Names in strict order, or names with weights."""


def to_duration(value: str | timedelta) -> timedelta:
    """Text with its unit, such as 30s, 5m or 1h30m."""
    try:
        return duration(value, "value")
    except ConfigurationError as error:
        raise click.BadParameter(
            f"{value!r} is not a duration with its unit, such as 30s, 5m or 1h30m."
        ) from error


def to_queues(value: str | Queues) -> Queues:
    """`payments,default` (strict order) or `payments=3,default=1` (shared by weight)."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names):
        raise click.BadParameter(f"{value!r} has an empty name; put one comma between two queues.")
    if len(set(names)) < len(names):
        raise click.BadParameter(f"{value!r} names a queue twice.")
    weights = [weight.strip() for _, sign, weight in pairs if sign]
    if not weights:
        return tuple(names)
    if len(weights) < len(names):
        raise click.BadParameter(
            f"{value!r} gives some queues a weight and some none; give it to all, to share the "
            "slots by weight, or to none, to serve them in strict order."
        )
    if not all(weight.isascii() and weight.isdecimal() and int(weight) for weight in weights):
        raise click.BadParameter(f"{value!r} has a weight that is not a whole number from 1.")
    return dict(zip(names, map(int, weights), strict=True))


def to_states(value: str | tuple[JobState, ...]) -> tuple[JobState, ...]:
    """`dead` or `dead,quarantined`."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(JobState(name.strip()) for name in value.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} names a state that does not exist; there are {', '.join(JobState)}."
        ) from error


def page_options(what: str, *, default: int) -> Callable[[F], F]:
    """Give a command the options of a page: how many of `what` it shows, and where it begins."""
    limit = click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help=f"The most {what} to show; a store shows no more than its page size, 200, at once.",
    )
    cursor = click.option(
        "--cursor", help="Continue after an earlier page, with the cursor it ended with."
    )
    return lambda command: limit(cursor(command))
