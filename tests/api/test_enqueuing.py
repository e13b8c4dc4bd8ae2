"""Enqueuing: what a handle's options ask the store for."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from tidemill import Bounds, JobContext, JobState, Retry, Tidemill
from tidemill.errors import (
    AnswerLost,
    BoundExceeded,
    ConfigurationError,
    EncodingError,
    InvalidValue,
    ParentsNotSupported,
    StoreUnavailable,
    WrongContext,
)
from tidemill.store.contract import Operation
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.values.jobs import JobRecord
from tidemill.values.tags import Tag


def declared(mill: Tidemill) -> Any:
    @mill.job("capture", queue="payments", priority=2, retry=Retry.never(), timeout="30s")
    async def capture(context: JobContext, payment_id: str, amount: int = 1) -> None: ...

    return capture


async def record_of(mill: Tidemill, ref: Any) -> JobRecord:
    return (await mill.jobs.get(ref)).record


async def test_a_job_is_stored_as_it_was_declared(mill: Tidemill, clock: VirtualClock) -> None:
    ref = await declared(mill).enqueue("p-1", amount=3)
    details = await mill.jobs.get(ref)
    record = details.record
    assert details.payload == b'{"amount":3,"payment_id":"p-1"}'
    assert (record.id, record.wire_name, record.queue) == (ref.id, "capture", "payments")
    assert (record.priority, record.retry, record.state) == (2, Retry.never(), JobState.READY)
    assert (record.timeout, record.due_at) == (timedelta(seconds=30), clock())
    assert not ref.deduplicated


async def test_options_say_otherwise(mill: Tidemill, clock: VirtualClock) -> None:
    ref = (
        await declared(mill)
        .with_options(
            queue="slow",
            priority=-1,
            delay="2h",
            expires=timedelta(days=1),
            idempotency_key="k",
            tenant="acme",
            tags=["vip", ("order", "42")],
            timeout="1m",
            retry=Retry.immediate(),
        )
        .enqueue("p-1")
    )
    details = await mill.jobs.get(ref)
    record = details.record
    assert (record.queue, record.priority, record.state) == ("slow", -1, JobState.SCHEDULED)
    assert record.due_at == clock() + timedelta(hours=2)
    assert record.not_after == clock() + timedelta(days=1)
    assert (record.idempotency_key, record.tenant) == ("k", "acme")
    assert details.tags == {Tag("vip"), Tag("order", "42")}
    assert (record.timeout, record.retry) == (timedelta(minutes=1), Retry.immediate())


async def test_options_add_up_and_leave_the_handle_as_it_was(mill: Tidemill) -> None:
    capture = declared(mill)
    first = capture.with_options(queue="slow", delay="1h", expires="1d")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    second = first.with_options(priority=0, at=at, expires=at)
    record = await record_of(mill, await second.enqueue("p-1"))
    assert (record.queue, record.priority) == ("slow", 0)
    assert (record.due_at, record.not_after) == (at, at)
    third = await record_of(mill, await second.with_options(delay="0s").enqueue("p-1"))
    assert third.state is JobState.READY
    untouched = await record_of(mill, await capture.enqueue("p-1"))
    assert (untouched.queue, untouched.not_after) == ("payments", None)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"delay": "soon"}, "delay='soon'"),
        ({"delay": 5}, "delay=5"),
        ({"delay": "1h", "at": datetime(2030, 1, 1, tzinfo=UTC)}, "not both"),
        ({"timeout": "9" * 400 + "w"}, "timeout="),
        ({"expires": "later"}, "expires='later'"),
        ({"tags": "vip"}, "tags='vip' is one text"),
        ({"tags": {"order": 42}}, r"\('order', 42\) is no tag"),
        ({"tags": [("a", "b", "c")]}, "is no tag"),
        ({"priority": "high"}, "priority='high' is of type str; give a whole number"),
        ({"priority": True}, "priority=True is of type bool; give a whole number"),
        ({"priority": 1.5}, "priority=1.5 is of type float"),
        ({"queue": 5}, "queue=5 is of type int; give text"),
        ({"idempotency_key": 7}, "idempotency_key=7 is of type int"),
        ({"tenant": object()}, "tenant=<object object at .* is of type object; give text"),
        ({"at": date(2030, 1, 1)}, r"at=datetime\.date\(2030, 1, 1\) is of type date"),
        ({"at": "2030-01-01"}, "at='2030-01-01' is of type str; give an aware datetime"),
        ({"expires": date(2030, 1, 1)}, r"expires=datetime\.date"),
        ({"timeout": 30}, "timeout=30"),
        ({"retry": 3}, "retry=3 is of type int; give a Retry"),
        ({"after": 5}, "after=5 cannot work; give a list of references"),
        ({"after": ["id"]}, "after="),
        ({"tags": 5}, "tags=5 is no list"),
        ({"tags": [5]}, "5 is no tag"),
        ({"tags": b"vip"}, "is no tag"),
    ],
)
def test_options_that_cannot_work_are_refused(
    mill: Tidemill, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        declared(mill).with_options(**options)


async def test_parents_are_passed_on_and_refused_by_the_store(mill: Tidemill) -> None:
    capture = declared(mill)
    parent = await capture.enqueue("p-1")
    with pytest.raises(ParentsNotSupported):
        await capture.with_options(after=[parent]).enqueue("p-2")


async def test_what_the_store_cannot_hold_is_refused(clock: VirtualClock) -> None:
    mill = Tidemill(store=MemoryStore(clock, bounds=Bounds(payload_bytes=64)))
    capture = declared(mill)
    with pytest.raises(BoundExceeded, match="Payload is"):
        await capture.enqueue("p" * 64)
    with pytest.raises(InvalidValue, match="no time zone"):
        await capture.with_options(at=datetime(2030, 1, 1)).enqueue("p")  # noqa: DTZ001 - on purpose
    assert (await mill.jobs.list()).jobs == ()


@pytest.mark.parametrize(
    "at",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
)
@pytest.mark.parametrize("option", ["at", "expires"])
async def test_an_instant_outside_the_calendar_is_refused(
    mill: Tidemill, option: str, at: datetime
) -> None:
    job = declared(mill).with_options(**{option: at})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="outside the calendar in UTC"):
        await job.enqueue("p")


async def test_what_is_due_at_an_end_of_the_calendar_is_stored(mill: Tidemill) -> None:
    capture = declared(mill)
    for at in (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)):
        assert await capture.with_options(at=at, expires=timedelta.max).enqueue("p")
    for delay in (timedelta.max, timedelta.min):
        assert await capture.with_options(delay=delay, timeout=timedelta.max).enqueue("p")


async def test_a_job_with_a_held_key_answers_the_one_that_holds_it(mill: Tidemill) -> None:
    capture = declared(mill).with_options(idempotency_key="k")
    first, second = await capture.enqueue("p-1"), await capture.enqueue("p-2")
    assert (second.id, second.deduplicated) == (first.id, True)
    assert second == first


async def test_many_are_stored_in_order(mill: Tidemill) -> None:
    capture = declared(mill)
    refs = await mill.enqueue_many(capture.bind(each) for each in ("a", "b", "c"))
    stored = [(await mill.jobs.get(ref)).payload for ref in refs]
    assert stored == [b'{"payment_id":"a"}', b'{"payment_id":"b"}', b'{"payment_id":"c"}']
    assert await mill.enqueue_many([]) == []


async def test_many_are_stored_whole_or_not_at_all(mill: Tidemill) -> None:
    capture = declared(mill)
    bad = capture.with_options(tenant="")
    with pytest.raises(InvalidValue):
        await mill.enqueue_many([capture.bind("a"), bad.bind("b")])
    assert (await mill.jobs.list()).jobs == ()


async def test_a_bound_job_makes_a_new_job_each_time(mill: Tidemill) -> None:
    bound = declared(mill).bind("a")
    first, second = await mill.enqueue_many([bound, bound])
    assert first.id < second.id


async def test_binding_takes_the_arguments_as_they_are_then(mill: Tidemill) -> None:
    @mill.job("count")
    def count(words: list[str]) -> None: ...

    words = ["a"]
    bound = count.bind(words)
    words.append("b")
    assert bound.payload == b'{"words":["a"]}'


async def test_a_job_of_another_app_is_refused(mill: Tidemill, store: MemoryStore) -> None:
    other = declared(Tidemill(store=store))
    with pytest.raises(ConfigurationError, match="'capture' belongs to another app"):
        await mill.enqueue_many([declared(mill).bind("a"), other.bind("b")])
    assert (await mill.jobs.list()).jobs == ()


async def test_an_argument_that_does_not_fit_is_not_stored(mill: Tidemill) -> None:
    with pytest.raises(EncodingError, match="'payment_id' of 'capture'"):
        await declared(mill).enqueue(1)
    assert (await mill.jobs.list()).jobs == ()


def test_threads_and_scripts_enqueue_with_sync(mill: Tidemill) -> None:
    capture = declared(mill)
    ref = capture.with_options(queue="slow").sync.enqueue("p-1")
    more = mill.sync.enqueue_many([capture.bind("p-2")])
    assert mill.jobs.sync.get(ref).record.queue == "slow"
    assert mill.jobs.sync.get(more[0]).record.queue == "payments"


async def test_sync_inside_a_running_loop_names_the_call_to_make(mill: Tidemill) -> None:
    capture = declared(mill)
    with pytest.raises(WrongContext, match=r"`await capture\.enqueue\(\.\.\.\)`"):
        capture.sync.enqueue("p-1")
    with pytest.raises(WrongContext, match=r"`await mill\.enqueue_many\(\.\.\.\)`"):
        mill.sync.enqueue_many([])
    ref = await capture.enqueue("p-1")
    with pytest.raises(WrongContext, match=r"`await ref\.result\(\.\.\.\)`"):
        ref.sync.result()
    with pytest.raises(WrongContext, match=r"`await mill\.jobs\.cancel\(\.\.\.\)`"):
        mill.jobs.sync.cancel(ref, actor="ada")
    assert len((await mill.jobs.list()).jobs) == 1


async def test_sync_works_in_a_thread_beside_a_loop(mill: Tidemill) -> None:
    ref = await asyncio.to_thread(declared(mill).sync.enqueue, "p-1")
    assert (await record_of(mill, ref)).state is JobState.READY


class Flaky(MemoryStore):
    """Fails its first requests: before they are committed, or after."""

    def __init__(self, clock: VirtualClock, faults: list[Exception]) -> None:
        super().__init__(clock)
        self.faults = faults

    def perform_sync(self, operation: Operation[Any]) -> Any:
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, StoreUnavailable):
            raise fault
        answer = super().perform_sync(operation)
        if fault is not None:
            raise fault
        return answer


@pytest.mark.parametrize("fault", [StoreUnavailable, AnswerLost])
async def test_an_enqueue_is_tried_again_and_stores_one_job(
    clock: VirtualClock, fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Flaky(clock, [fault("once"), fault("twice")])
    mill = Tidemill(store=store)
    monkeypatch.setattr(mill.client, "_pauses", (0.0, 0.0))
    ref = await declared(mill).enqueue("p-1")
    assert [record.id for record in (await mill.jobs.list()).jobs] == [ref.id]
    assert not ref.deduplicated

    store.faults = [fault("once"), fault("twice")]
    other = await asyncio.to_thread(declared(mill).sync.enqueue, "p-2")
    assert [record.id for record in (await mill.jobs.list()).jobs] == [other.id, ref.id]


async def test_a_store_that_stays_away_is_told(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Flaky(clock, [StoreUnavailable(str(number)) for number in range(3)])
    mill = Tidemill(store=store)
    monkeypatch.setattr(mill.client, "_pauses", (0.0, 0.0))
    with pytest.raises(StoreUnavailable, match="2"):
        await declared(mill).enqueue("p-1")


async def test_a_mapping_of_tags_is_its_pairs(mill: Tidemill) -> None:
    ref = await declared(mill).with_options(tags={"customer": "42"}).enqueue("p-1")
    assert (await mill.jobs.get(ref)).tags == {Tag("customer", "42")}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda capture: [capture.bind("p-1"), capture], r"Write capture\.bind\(…\)"),
        (lambda capture: [capture.function], r"Write job\.bind\(…\)"),
        (lambda capture: ["p-1"], "was given 'p-1'"),
        (lambda capture: capture.bind("p-1"), r"a list of calls"),
        (lambda capture: capture, r"a list of calls"),
    ],
    ids=["a job among calls", "a function", "an argument", "one call", "one job"],
)
def test_what_is_no_bound_call_is_refused_with_what_to_write(
    mill: Tidemill, given: Any, says: str
) -> None:
    several = given(declared(mill))
    with pytest.raises(ConfigurationError, match=says):
        mill.sync.enqueue_many(several)
    with pytest.raises(ConfigurationError, match=says):
        asyncio.run(mill.enqueue_many(several))
    with (
        closing(sqlite3.connect(":memory:")) as tx,
        pytest.raises(ConfigurationError, match=f"^enqueue_many_in takes.*{says}"),
    ):
        mill.enqueue_many_in(tx, several)
    assert mill.jobs.sync.counts() == ()
