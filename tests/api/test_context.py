"""JobContext: what a handler knows and may say."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemill import Bounds, CancelReason, JobCancelled, JobContext
from tidemill.errors import BoundExceeded, InvalidValue
from tidemill.shell.cancellation import Cancellation
from tidemill.shell.completion import Completion
from tidemill.shell.identity import new_id
from tidemill.shell.leaving import Leaving
from tidemill.shell.notepad import Notepad
from tidemill.shell.talk import AttemptTalk
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

START = datetime(2026, 1, 1, tzinfo=UTC)


def claimed(timeout: timedelta | None = None) -> Claimed:
    return Claimed(
        id=JobId(new_id()),
        attempt=Attempt(3),
        worker=WorkerId(new_id()),
        wire_name="orders.sell",
        payload=b"{}",
        queue="shop",
        priority=0,
        created_at=START,
        due_at=START + timedelta(minutes=1),
        started_at=START + timedelta(minutes=2),
        timeout=timeout,
        retry=Retry(),
        tenant="acme",
        trace_context=None,
    )


def talk(job: Claimed) -> AttemptTalk:
    completion = Completion(lambda: None, lambda value: None if value is None else b"written")
    return AttemptTalk(completion, Leaving(job), Notepad(lambda _: None))


@pytest.fixture
def cancellation() -> Cancellation:
    return Cancellation()


@pytest.fixture
def context(cancellation: Cancellation) -> JobContext:
    job, bounds = claimed(), Bounds(tags_per_job=2)
    return JobContext(job, cancellation, lambda: START, talk(job), bounds=bounds)


def test_a_context_tells_of_its_attempt(cancellation: Cancellation) -> None:
    job = claimed(timedelta(seconds=30))
    context = JobContext(job, cancellation, lambda: START, talk(job))
    assert (context.job_id, context.attempt, context.queue) == (job.id, 3, "shop")
    assert (context.tenant, context.wire_name) == ("acme", "orders.sell")
    assert (context.enqueued_at, context.due_at) == (START, START + timedelta(minutes=1))
    assert context.deadline == START + timedelta(minutes=2, seconds=30)
    assert context.now() == START
    assert repr(context) == f"<JobContext orders.sell {job.id} attempt 3>"


def test_without_a_timeout_there_is_no_deadline(context: JobContext) -> None:
    assert context.deadline is None


def test_a_context_cannot_be_written_to(context: JobContext) -> None:
    anything: Any = context
    for name in ("attempt", "cancelled", "something"):
        with pytest.raises(AttributeError):
            setattr(anything, name, 1)


def test_nobody_asked_it_to_stop(context: JobContext) -> None:
    assert not context.cancelled
    assert context.cancel_reason is None
    context.raise_if_cancelled()
    assert context.sync.wait_cancelled("1ms") is None


def test_an_attempt_that_is_asked_to_stop_is_told_why(
    context: JobContext, cancellation: Cancellation
) -> None:
    cancellation.set(CancelReason.SHUTDOWN)
    assert context.cancelled
    assert context.cancel_reason is CancelReason.SHUTDOWN
    with pytest.raises(JobCancelled, match="shutdown"):
        context.raise_if_cancelled()
    assert context.sync.wait_cancelled(timedelta(hours=1)) is CancelReason.SHUTDOWN


async def test_a_coroutine_waits_until_it_is_asked(
    context: JobContext, cancellation: Cancellation
) -> None:
    waiting = asyncio.create_task(context.wait_cancelled())
    await asyncio.sleep(0)
    assert not waiting.done()
    threading.Thread(target=cancellation.set, args=[CancelReason.OPERATOR]).start()
    assert await waiting is CancelReason.OPERATOR


def test_a_thread_waits_until_it_is_asked(context: JobContext, cancellation: Cancellation) -> None:
    asker = threading.Thread(target=cancellation.set, args=[CancelReason.TIMEOUT])
    asker.start()
    assert context.sync.wait_cancelled() is CancelReason.TIMEOUT
    asker.join()


def test_tags_are_labels_and_pairs(context: JobContext) -> None:
    context.add_tag("vip")
    context.add_tag("vip")
    context.add_tag("order", "42")
    assert context.tags == {Tag("vip"), Tag("order", "42")}


def test_a_tag_the_store_could_not_hold_is_refused_at_the_call(context: JobContext) -> None:
    for key, value in (("", ""), ("a\0", ""), ("a", "\ud800")):
        with pytest.raises(InvalidValue):
            context.add_tag(key, value)
    with pytest.raises(BoundExceeded, match="Tag value"):
        context.add_tag("a", "b" * 129)
    assert context.tags == frozenset()


def test_one_tag_too_many_is_refused(context: JobContext) -> None:
    context.add_tag("a")
    context.add_tag("b")
    context.add_tag("a")
    with pytest.raises(BoundExceeded, match="Number of tags is 3 tags, over the bound of 2"):
        context.add_tag("c")
