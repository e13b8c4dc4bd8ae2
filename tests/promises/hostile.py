"""Handlers that return, raise and do what nobody should; none of them may stop their worker."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import Any

from tests.promises.promised import journal, mill

from tidemill import JobContext, Retry

NEVER = Retry.never()
MEGABYTES = 4 << 20
SURROGATE = "\ud800"


class Unspeakable(Exception):
    """It cannot even be shown."""

    def __str__(self) -> str:
        message = "no words"
        raise RuntimeError(message)

    __repr__ = __str__


class Outsider(BaseException):
    """No `except Exception` catches it."""


@mill.job("hostile.echo", retry=NEVER)
async def echo(text: str) -> str:
    return text


@mill.job("hostile.too_much", retry=NEVER)
async def too_much() -> str:
    return "x" * MEGABYTES


@mill.job("hostile.unwritable", retry=NEVER)
async def unwritable() -> Any:
    return object()


@mill.job("hostile.surrogate", retry=NEVER)
async def surrogate() -> str:
    return SURROGATE


@mill.job("hostile.not_a_number", retry=NEVER)
async def not_a_number() -> float:
    return float("nan")


@mill.job("hostile.long_words", retry=NEVER)
async def long_words() -> None:
    raise ValueError("\0" + SURROGATE + "x" * MEGABYTES)


@mill.job("hostile.unspeakable", retry=NEVER)
async def unspeakable() -> None:
    raise Unspeakable


@mill.job("hostile.endless", retry=NEVER)
async def endless() -> None:
    await endless.function()


@mill.job("hostile.bad_tag", retry=NEVER)
async def bad_tag(ctx: JobContext) -> None:
    ctx.add_tag("\0", SURROGATE)


@mill.job("hostile.too_many_tags", retry=NEVER)
async def too_many_tags(ctx: JobContext) -> None:
    for number in range(MEGABYTES):
        ctx.add_tag(f"t{number}")


@mill.job("hostile.exits", retry=NEVER)
async def exits() -> None:
    sys.exit(3)


@mill.job("hostile.exits_in_thread", retry=NEVER)
def exits_in_thread() -> None:
    sys.exit(3)


@mill.job("hostile.interrupts", retry=NEVER)
async def interrupts() -> None:
    raise KeyboardInterrupt


@mill.job("hostile.interrupts_in_thread", retry=NEVER)
def interrupts_in_thread() -> None:
    raise KeyboardInterrupt


@mill.job("hostile.outsider", retry=NEVER)
async def outsider() -> None:
    raise Outsider


@mill.job("hostile.cancels_itself", retry=NEVER)
async def cancels_itself() -> None:
    raise asyncio.CancelledError


@mill.job("hostile.stops_iteration", retry=NEVER)
def stops_iteration() -> None:
    raise StopIteration


@mill.job("hostile.swallows", retry=NEVER, timeout=timedelta(seconds=0.3))
async def swallows() -> str:
    """Hear that it is to stop, and end when it likes, as if nothing had been said."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        journal("swallowed", "timeout")
    return "and yet"
