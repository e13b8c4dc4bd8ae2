"""`ctx.progress`: how far an attempt has come, as others see it (clause D2)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.api.saying import Saying, context, run_in_process
from tests.waiting import until

from tidemill import JobContext, JobRef, Retry, Tidemill
from tidemill.errors import InvalidValue
from tidemill.store.monitor import GetJob
from tidemill.values.notes import JobProgress

ENOUGH = 60


@pytest.fixture
def mill(tmp_path: Path) -> Iterator[Tidemill]:
    mill = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    yield mill
    mill.close()


@pytest.fixture
def saying() -> Saying:
    return Saying()


def progress(mill: Tidemill, ref: JobRef[Any]) -> JobProgress | None:
    details = mill.store.perform_sync(GetJob(ref.id))
    assert details is not None
    return details.record.progress


def words(mill: Tidemill, ref: JobRef[Any]) -> tuple[float | None, str] | None:
    found = progress(mill, ref)
    return None if found is None else (found.fraction, found.message)


async def test_a_coroutine_is_seen_on_its_way_and_its_last_word_stays(mill: Tidemill) -> None:
    seen = asyncio.Event()

    @mill.job("grind")
    async def grind(ctx: JobContext) -> None:
        ctx.progress(0.5, "half")
        await seen.wait()
        ctx.progress(1, "all")

    ref = await grind.enqueue()
    async with mill.worker():
        await until(lambda: words(mill, ref) == (0.5, "half"))
        assert (await mill.jobs.get(ref)).state == "running"
        seen.set()
        await ref.result(timeout=ENOUGH)
    assert words(mill, ref) == (1, "all")
    (listed,) = (await mill.jobs.list()).jobs
    assert (await mill.jobs.get(ref)).progress == listed.progress == progress(mill, ref)


async def test_a_plain_handler_is_seen_on_its_way(mill: Tidemill) -> None:
    seen = threading.Event()

    @mill.job("grind")
    def grind(ctx: JobContext) -> None:
        ctx.progress(0.25)
        assert seen.wait(ENOUGH)

    ref = await grind.enqueue()
    async with mill.worker():
        await until(lambda: words(mill, ref) == (0.25, ""))
        seen.set()
        await ref.result(timeout=ENOUGH)


async def test_a_later_word_reaches_the_store_while_the_handler_runs(mill: Tidemill) -> None:
    seen = asyncio.Event()

    @mill.job("grind")
    async def grind(ctx: JobContext) -> None:
        ctx.progress(0.1, "first")
        await until(lambda: words(mill, refs[0]) == (0.1, "first"))
        for number in range(2, 6):
            ctx.progress(number / 10, "then")
        await seen.wait()

    refs = [await grind.enqueue()]
    async with mill.worker():
        await until(lambda: words(mill, refs[0]) == (0.5, "then"))
        seen.set()
        await refs[0].result(timeout=ENOUGH)


async def test_a_failed_attempts_word_stays_until_the_next_attempt_speaks(mill: Tidemill) -> None:
    @mill.job("grind", retry=Retry.immediate(max_attempts=2))
    async def grind(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            ctx.progress(0.5, "half")
            raise OSError

    ref = await grind.enqueue()
    async with mill.worker():
        await ref.result(timeout=ENOUGH)
    found = progress(mill, ref)
    assert found is not None
    assert (found.attempt, found.fraction, found.message) == (1, 0.5, "half")


@pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")
def test_a_handler_in_a_process_is_seen_on_its_way(tmp_path: Path) -> None:
    handler = """
    ctx.progress(0.5, "half")
    looked(lambda job: job.progress is not None and job.progress.message == "half")
    ctx.progress(1)
    """
    job = run_in_process(tmp_path, handler)
    assert job["progress"] == [1, 1.0, ""]
    assert job["state"] == "succeeded"


@pytest.mark.parametrize(
    ("fraction", "kept"),
    [
        (0, 0.0), (1, 1.0), (0.1 + 0.2, 0.1 + 0.2), (-0.005, 0.0), (1.005, 1.0), (None, None),
        (Decimal("0.5"), 0.5), (Fraction(1, 4), 0.25), (True, 1.0),
    ],
)  # fmt: skip
def test_a_fraction_is_any_number_from_0_to_1(saying: Saying, fraction: Any, kept: Any) -> None:
    context(saying).progress(fraction)
    assert saying.progress is not None
    assert saying.progress.fraction == kept


NO_FRACTIONS = [
    45, -1, 1.5, float("nan"), float("inf"), "0.5", object(), 10**400, Decimal("sNaN"),
]  # fmt: skip


@pytest.mark.parametrize("fraction", NO_FRACTIONS)
def test_what_is_no_fraction_is_refused_with_how_to_say_it(saying: Saying, fraction: Any) -> None:
    with pytest.raises(InvalidValue, match=r"is no number from 0 to 1: say 0\.45 for 45 %"):
        context(saying).progress(fraction, "on the way")
    assert saying.progress is None


def test_a_message_over_the_bound_is_cut_with_a_note(saying: Saying) -> None:
    context(saying).progress(0.5, "x" * 600 + "\0")
    assert saying.progress is not None
    assert len(saying.progress.message.encode()) <= 512
    assert saying.progress.message.endswith("… [cut: 604 bytes]")


def test_a_message_that_is_no_text_is_kept_as_its_text(saying: Saying) -> None:
    anything: Any = ValueError("odd")
    context(saying).progress(0.5, anything)
    assert saying.progress is not None
    assert saying.progress.message == "odd"


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


def test_a_message_that_cannot_be_shown_fails_no_attempt(saying: Saying) -> None:
    anything: Any = Unshowable()
    context(saying).progress(0.5, anything)
    context(saying).log(anything)
    said = "<Unshowable that cannot be shown>"
    assert saying.progress is not None
    assert (saying.progress.message, saying.lines[-1].message) == (said, said)
