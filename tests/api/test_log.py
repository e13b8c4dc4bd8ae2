"""`ctx.log` and `mill.jobs.log`: what a handler logs, kept with its attempt (clause D2)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.api.saying import NOW, Saying, context, run_in_process
from tests.waiting import until

from tidemill import Bounds, JobContext, JobRef, Retry, Tidemill
from tidemill.errors import InvalidValue, NotFound, WrongContext
from tidemill.store.notes import ReadLog

ENOUGH = 60
STRANGER = UUID(int=1)


@pytest.fixture
def mill(tmp_path: Path) -> Iterator[Tidemill]:
    mill = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    yield mill
    mill.close()


@pytest.fixture
def saying() -> Saying:
    return Saying()


def lines(mill: Tidemill, ref: JobRef[Any]) -> list[tuple[int, str]]:
    page = mill.store.perform_sync(ReadLog(ref.id, limit=200))
    return [(line.attempt, line.message) for line in page.lines]


async def test_a_coroutines_lines_are_read_while_it_runs_and_after(mill: Tidemill) -> None:
    seen = asyncio.Event()

    @mill.job("copy")
    async def copy(ctx: JobContext) -> None:
        ctx.log("copied", rows=12, table="orders")
        await seen.wait()
        ctx.log("done")

    ref = await copy.enqueue()
    async with mill.worker():
        await until(lambda: lines(mill, ref) == [(1, "copied")])
        seen.set()
        await ref.result(timeout=ENOUGH)
    page = await mill.jobs.log(ref)
    assert [(line.number, line.message, line.values) for line in page.lines] == [
        (1, "copied", {"rows": 12, "table": "orders"}), (2, "done", {}),
    ]  # fmt: skip
    assert page.next_cursor is None
    assert (await mill.jobs.get(ref)).log == page.lines


async def test_every_attempts_lines_are_kept_however_it_ended(mill: Tidemill) -> None:
    @mill.job("copy", retry=Retry.immediate(max_attempts=2))
    def copy(ctx: JobContext) -> None:
        ctx.log("started")
        raise OSError

    ref = await copy.enqueue()
    async with mill.worker():
        await mill.client.wait_for_end(ref.id, ENOUGH)
    assert lines(mill, ref) == [(1, "started"), (2, "started")]


async def test_threads_of_one_handler_log_each_line_once(mill: Tidemill) -> None:
    @mill.job("copy")
    def copy(ctx: JobContext) -> None:
        def log_some(name: str) -> None:
            for number in range(20):
                ctx.log(f"{name}{number}")

        threads = [threading.Thread(target=log_some, args=[name]) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    ref = await copy.enqueue()
    async with mill.worker():
        await ref.result(timeout=ENOUGH)
    page = (await mill.jobs.log(ref, limit=200)).lines
    assert [line.number for line in page] == list(range(1, 61))
    for name in "abc":
        own = [line.message for line in page if line.message.startswith(name)]
        assert own == [f"{name}{number}" for number in range(20)]


@pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")
def test_a_handler_in_a_process_logs_as_others_do(tmp_path: Path) -> None:
    handler = """
    for number in range(510):
        ctx.log("ground", stone=number)
    if ctx.attempt == 1:
        raise LookupError("no more stones")
    """
    job = run_in_process(tmp_path, handler)
    assert job["state"] == "succeeded"
    assert job["errors"] == ["no more stones"]
    for attempt in (1, 2):
        lines = [line[1:] for line in job["log"] if line[0] == attempt]
        assert lines[:500] == [[n, "ground", {"stone": n - 1}] for n in range(1, 501)]
        last = "No more lines are kept: an attempt has 500."
        assert lines[500:] == [[501, last, {}]]


async def test_after_the_last_line_one_says_that_no_more_are_kept(mill: Tidemill) -> None:
    @mill.job("copy")
    async def copy(ctx: JobContext) -> None:
        for number in range(510):
            ctx.log(f"row {number}")

    ref = await copy.enqueue()
    async with mill.worker():
        await ref.result(timeout=ENOUGH)
    found, cursor = [], None
    while True:
        page = await mill.jobs.log(ref, cursor=cursor, limit=200)
        found += [line.message for line in page.lines]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found[:500] == [f"row {number}" for number in range(500)]
    assert found[500:] == ["No more lines are kept: an attempt has 500."]


async def test_a_log_is_paged_and_read_from_threads(mill: Tidemill) -> None:
    @mill.job("copy")
    async def copy(ctx: JobContext) -> None:
        for number in range(3):
            ctx.log(f"row {number}")

    ref = await copy.enqueue()
    async with mill.worker():
        await ref.result(timeout=ENOUGH)
    first = await mill.jobs.log(str(ref.id), limit=2)
    rest = await asyncio.to_thread(mill.jobs.sync.log, ref.id, cursor=first.next_cursor)
    assert [line.number for line in (*first.lines, *rest.lines)] == [1, 2, 3]
    assert rest.next_cursor is None
    with pytest.raises(WrongContext, match=r"await mill\.jobs\.log\(\.\.\.\)"):
        mill.jobs.sync.log(ref)


async def test_a_job_that_logged_nothing_has_an_empty_log_and_no_job_has_none(
    mill: Tidemill,
) -> None:
    @mill.job("copy")
    async def copy() -> None: ...

    ref = await copy.enqueue()
    for page in (await mill.jobs.log(ref), await asyncio.to_thread(mill.jobs.sync.log, ref)):
        assert (page.lines, page.next_cursor) == ((), None)
    with pytest.raises(NotFound, match=str(STRANGER)):
        await mill.jobs.log(STRANGER)
    with pytest.raises(NotFound, match=str(STRANGER)):
        await asyncio.to_thread(mill.jobs.sync.log, STRANGER)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"limit": "x"}, "limit='x' is of type str; give a whole number"),
        ({"limit": True}, "limit=True"),
        ({"cursor": 5}, "cursor=5 is of type int; give text"),
        ({"cursor": "%%"}, "'%%' is not a page cursor"),
        ({"job": "seven"}, "'seven' is not a job id"),
    ],
)
async def test_a_log_asked_for_wrongly_says_what_is_wanted(
    mill: Tidemill, wrong: dict[str, Any], why: str
) -> None:
    asked = {"job": STRANGER, **wrong}
    with pytest.raises(InvalidValue, match=why):
        await mill.jobs.log(**asked)
    with pytest.raises(InvalidValue, match=why):
        await asyncio.to_thread(lambda: mill.jobs.sync.log(**asked))


def test_a_line_is_dated_and_numbered(saying: Saying) -> None:
    ctx = context(saying)
    ctx.log("one")
    ctx.log("two", self="me", message="fine")
    assert [(line.number, line.at, line.message, line.fields) for line in saying.lines] == [
        (1, NOW, "one", ""), (2, NOW, "two", '{"self":"me","message":"fine"}'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "message", [ValueError("odd"), None, 5, b"\xff", "nul \0", "\ud800", "long " * 2_000, ""]
)
def test_logging_never_fails_for_its_message(saying: Saying, message: Any) -> None:
    context(saying).log(message, odd=object(), nan=float("nan"), long="x" * 10_000)
    (line,) = saying.lines
    assert len(line.message.encode()) <= 4_096
    assert "\0" not in line.message
    assert len(line.fields.encode()) < 4_096


def test_what_is_logged_after_the_end_is_not_heard(saying: Saying) -> None:
    ctx = context(saying, Bounds(log_lines=1))
    ctx.log("in time")
    saying.end()
    ctx.log("late")
    ctx.progress(0.5)
    assert [line.message for line in saying.lines] == ["in time"]
    assert saying.progress is None
