"""`mill.jobs`: reading jobs and acting on them."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tidemill import Effect, JobRef, JobState, Tidemill
from tidemill.errors import ActionIdReused, InvalidValue, NotFound
from tidemill.shell.identity import new_id

STRANGER = UUID(int=1)


@pytest.fixture
def sell(mill: Tidemill) -> Any:
    @mill.job("sell", queue="shop")
    def sell(number: int = 1) -> None: ...

    return sell


async def state_of(mill: Tidemill, ref: JobRef[Any]) -> JobState:
    return (await mill.jobs.get(ref)).state


async def test_a_job_is_read_by_reference_id_or_text(mill: Tidemill, sell: Any) -> None:
    ref = await sell.enqueue(7)
    for job in (ref, ref.id, str(ref.id)):
        assert (await mill.jobs.get(job)).payload == b'{"number":7}'
    assert (await asyncio.to_thread(mill.jobs.sync.get, ref.id)).id == ref.id


async def test_what_is_asked_for_most_is_read_alike_from_a_job_and_from_a_list(
    mill: Tidemill, sell: Any
) -> None:
    ref = await sell.enqueue(7)
    await mill.jobs.cancel(ref, actor="ada")
    found = await mill.jobs.get(ref)
    (listed,) = (await mill.jobs.list()).jobs
    for job in (found, listed):
        assert (job.id, job.wire_name, job.queue) == (ref.id, "sell", "shop")
        assert (job.state, job.cause, job.attempt) == (JobState.CANCELLED, "operator:ada", 0)
        assert (job.due_at, job.finished_at) == (found.record.due_at, found.record.finished_at)
    assert found.finished_at is not None


async def test_a_job_that_is_not_there_is_told(mill: Tidemill) -> None:
    with pytest.raises(NotFound, match=str(STRANGER)) as raised:
        await mill.jobs.get(STRANGER)
    assert raised.value.job_id == STRANGER
    with pytest.raises(InvalidValue, match="'seven' is not a job id"):
        await mill.jobs.get("seven")


async def test_lists_are_filtered_and_paged(mill: Tidemill, sell: Any) -> None:
    refs = [await sell.enqueue() for _ in range(3)]
    await sell.with_options(queue="other").enqueue()
    await sell.with_options(delay="1h").enqueue()
    first = await mill.jobs.list(states=["ready"], queue="shop", wire_name="sell", limit=2)
    rest = await asyncio.to_thread(
        lambda: mill.jobs.sync.list(states=[JobState.READY], queue="shop", cursor=first.next_cursor)
    )
    assert [job.id for job in (*first.jobs, *rest.jobs)] == [ref.id for ref in reversed(refs)]
    assert (await mill.jobs.list(wire_name="buy")).jobs == ()
    with pytest.raises(InvalidValue, match=r"asleep.*known are scheduled"):
        await mill.jobs.list(states=["asleep"])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"limit": "x"}, "limit='x' is of type str; give a whole number"),
        ({"limit": True}, "limit=True"),
        ({"queue": 5}, "queue=5 is of type int; give text"),
        ({"wire_name": b"x"}, "wire_name=b'x'"),
        ({"cursor": 5}, "cursor=5"),
        ({"cursor": "%%"}, "'%%' is not a page cursor"),
        ({"states": 5}, "states=5 names a state"),
        ({"states": [None]}, "names a state"),
    ],
)
async def test_a_list_asked_for_wrongly_says_what_is_wanted(
    mill: Tidemill, wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        await mill.jobs.list(**wrong)
    with pytest.raises(InvalidValue, match=why):
        await asyncio.to_thread(lambda: mill.jobs.sync.list(**wrong))


@pytest.mark.parametrize("verb", ["cancel", "requeue", "rerun", "run_now"])
async def test_an_action_asked_for_wrongly_says_what_is_wanted(
    mill: Tidemill, sell: Any, verb: str
) -> None:
    ref = await sell.enqueue()
    act: Any = getattr(mill.jobs, verb)
    for arguments, why in (
        ((5, {"actor": "ada"}), "5 is not a job id"),
        ((None, {"actor": "ada"}), "None is not a job id"),
        ((ref, {"actor": 5}), "Actor=5 is of type int; give text"),
        ((ref, {"actor": "ada", "action": "twice"}), "action='twice' is of type str; give a UUID"),
    ):
        with pytest.raises(InvalidValue, match=why):
            await act(arguments[0], **arguments[1])
    assert await state_of(mill, ref) is JobState.READY


async def test_an_action_id_given_to_another_job_is_refused(mill: Tidemill, sell: Any) -> None:
    first, second, action = await sell.enqueue(), await sell.enqueue(), uuid4()
    done = await mill.jobs.cancel(first, actor="ada", action=action)
    assert await mill.jobs.cancel(first, actor="ada", action=action) == done
    with pytest.raises(ActionIdReused, match=f"cancel of job {first.id} .* of job {second.id}"):
        await mill.jobs.cancel(second, actor="ada", action=action)
    assert await state_of(mill, second) is JobState.READY


async def test_jobs_are_counted_by_queue_and_state(mill: Tidemill, sell: Any) -> None:
    await sell.enqueue()
    await sell.with_options(delay="1h").enqueue()
    for counts in (await mill.jobs.counts(), await asyncio.to_thread(mill.jobs.sync.counts)):
        assert {(each.queue, each.state): each.count for each in counts} == {
            ("shop", JobState.READY): 1,
            ("shop", JobState.SCHEDULED): 1,
        }


async def test_actions_change_a_job_and_say_so(mill: Tidemill, sell: Any) -> None:
    ref = await sell.with_options(delay="1h").enqueue(7)
    assert (await mill.jobs.run_now(ref, actor="ada")).effect is Effect.DONE
    assert await state_of(mill, ref) is JobState.READY
    assert (await mill.jobs.cancel(ref.id, actor="ada")).effect is Effect.DONE
    assert (await mill.jobs.get(ref)).cause == "operator:ada"
    again = await mill.jobs.rerun(str(ref.id), actor="ada")
    assert again.other is not None
    assert (await mill.jobs.get(again.other)).record.rerun_of == ref.id
    assert (await mill.jobs.requeue(ref, actor="ada")).state is JobState.READY


async def test_what_cannot_be_done_is_an_answer(mill: Tidemill, sell: Any) -> None:
    ref = await sell.enqueue()
    assert (await mill.jobs.requeue(ref, actor="ada")).effect is Effect.UNCHANGED
    assert (await mill.jobs.cancel(STRANGER, actor="ada")).effect is Effect.NOT_FOUND


async def test_an_action_repeated_under_its_id_changes_nothing(mill: Tidemill, sell: Any) -> None:
    ref = await sell.enqueue()
    action = new_id()
    first = await mill.jobs.cancel(ref, actor="ada", action=action)
    await mill.jobs.requeue(ref, actor="ada")
    assert await mill.jobs.cancel(ref, actor="ada", action=action) == first
    assert await state_of(mill, ref) is JobState.READY


def test_threads_act_with_sync(mill: Tidemill, sell: Any) -> None:
    ref = sell.with_options(delay="1h").sync.enqueue()
    jobs = mill.jobs.sync
    assert jobs.run_now(ref, actor="ada").effect is Effect.DONE
    assert jobs.cancel(ref, actor="ada").effect is Effect.DONE
    assert jobs.rerun(ref, actor="ada").effect is Effect.DONE
    assert jobs.requeue(ref, actor="ada").effect is Effect.DONE


async def test_a_job_shows_itself_on_one_line_without_its_payload(
    mill: Tidemill, sell: Any
) -> None:
    ref = await sell.enqueue(7)
    await mill.jobs.cancel(ref, actor="ada")
    assert repr(await mill.jobs.get(ref)) == (
        f"<JobDetails {ref.id} sell: cancelled (operator:ada), attempt 0>"
    )
