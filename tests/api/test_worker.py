"""A worker made by the app: its settings, and the bounds its handlers meet."""

import inspect
import threading
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from tidemill import Bounds, JobContext, JobNotSucceeded, Retry, Tidemill
from tidemill.errors import ConfigurationError, WrongContext
from tidemill.shell.settings import WorkerSettings
from tidemill.store.monitor import CountJobs

SLOTS = 20


@pytest.fixture
def mill() -> Tidemill:
    return Tidemill("memory://", bounds=Bounds(name_bytes=8, tags_per_job=2))


def test_the_app_has_every_setting_of_a_worker_with_its_default() -> None:
    parameters = inspect.signature(Tidemill.worker).parameters
    assert [name for name in parameters if name != "self"] == [
        field.name for field in fields(WorkerSettings)
    ]
    for field in fields(WorkerSettings):
        default = parameters[field.name].default
        if isinstance(field.default, timedelta):
            assert Tidemill("memory://").worker(**{field.name: default})
        else:
            assert default == field.default


@pytest.mark.parametrize(
    "name", [field.name for field in fields(WorkerSettings) if isinstance(field.default, timedelta)]
)
def test_a_duration_of_a_worker_is_text_with_its_unit(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}='1 moment' is not a duration"):
        Tidemill("memory://").worker(**{name: "1 moment"})


async def test_a_handler_meets_the_bounds_of_its_store(mill: Tidemill) -> None:
    @mill.job("label", retry=Retry.never())
    async def label(context: JobContext, *, many: int, size: int) -> str:
        for number in range(many):
            context.add_tag(f"{number:0{size}}")
        return "fits"

    async def result(**arguments: Any) -> str:
        return await (await label.enqueue(**arguments)).result(timeout=30)

    async with mill.worker():
        assert await result(many=2, size=8) == "fits"
        for too_large in ({"many": 3, "size": 1}, {"many": 1, "size": 9}):
            with pytest.raises(JobNotSucceeded):
                await result(**too_large)
    dead = (await mill.jobs.list(states=["dead"])).jobs
    messages = [
        error.message
        for job in dead
        for attempt in (await mill.jobs.get(job.id)).attempts
        if (error := attempt.error) is not None
    ]
    advice = "Make it smaller, or raise the bound: Tidemill(url, bounds=Bounds(...))."
    assert sorted(messages) == [
        f"Number of tags is 3 tags, over the bound of 2 tags, and is refused. {advice}",
        f"Tag is 9 bytes, over the bound of 8 bytes, and is refused. {advice}",
    ]


async def test_handlers_that_fill_every_slot_can_all_enqueue_while_outcomes_are_reported(
    tmp_path: Path,
) -> None:
    mill = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    mill.store.migrate()
    together = threading.Barrier(SLOTS)

    @mill.job("brief")
    async def brief() -> None: ...

    @mill.job("wide", retry=Retry.never())
    def wide() -> None:
        together.wait(60)
        for _ in range(5):
            brief.sync.enqueue()

    async with mill.worker(concurrency=SLOTS):
        await mill.enqueue_many([brief.bind() for _ in range(100)])
        for ref in await mill.enqueue_many([wide.bind() for _ in range(SLOTS)]):
            await ref.result(timeout=60)
        await until(lambda: counted(mill) == {("succeeded", 100 + 6 * SLOTS)})
    mill.close()


def counted(mill: Tidemill) -> set[tuple[str, int]]:
    return {(each.state.value, each.count) for each in mill.store.perform_sync(CountJobs())}


async def test_a_worker_shows_its_queues_its_slots_and_where_it_stands(mill: Tidemill) -> None:
    worker = mill.worker(queues=["mail", "default"], concurrency=3)
    assert repr(worker) == "<Worker of mail, default: 3 slots, not started>"
    async with worker:
        assert repr(worker).endswith("running>")
        worker.drain()
        await until(lambda: repr(worker).endswith("ending>"))
    assert repr(worker).endswith("ended>")


def test_a_worker_without_an_event_loop_says_what_it_needs(mill: Tidemill) -> None:
    worker: Any = mill.worker()
    words = r"`async with mill\.worker\(\)` under asyncio\.run, or `tidemill worker`"
    with pytest.raises(WrongContext, match=words), worker:
        pass
