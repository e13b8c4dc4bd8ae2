"""Faults of the store, and what a worker makes of them (clause M3).

The worker is the real one: its node and its pulse on virtual time, and once the whole of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

import pytest

from tidemill.app import Tidemill
from tidemill.conformance.faulty import (
    FAULTS,
    WHY,
    Asked,
    Fate,
    FaultyStore,
    claims,
    is_beat,
    is_exchange,
    is_registration,
    is_upkeep,
    reports,
)
from tidemill.conformance.floor import Floor, successes
from tidemill.conformance.scenes import AT_ONCE, GRIND, LEASE, details, register, start
from tidemill.conformance.timeline import FOR_EVER
from tidemill.core.commands import NoticeDegraded, NoticeRecovered
from tidemill.core.pulse import NoticeAnswered, NoticeNoAnswer
from tidemill.store.contract import Store
from tidemill.store.exchange import Exchange
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import ListWorkers

BOTH: Final = "outcomes and a claim"
OUTCOMES: Final = "outcomes alone"
CLAIM: Final = "a claim alone"
NEITHER: Final = "neither"
SOON: Final = LEASE.total_seconds() / 3
"""Seconds in which a worker gets something done although half of what it asks for fails."""
PATIENT_SECONDS: Final = 60
"""How long a running worker may take for a handful of jobs on a machine that is busy."""

anyhow = pytest.mark.parametrize("fate", FAULTS, ids=lambda fate: fate.value)


def utc_now() -> datetime:
    """The host's time."""
    return datetime.now(UTC)


def form_of(asked: Asked) -> str:
    """What an exchange carried."""
    operation = asked.operation
    if reports(operation):
        return BOTH if claims(operation) else OUTCOMES
    return CLAIM if claims(operation) else NEITHER


def lists_what_runs(asked: Asked) -> bool:
    """Whether an exchange asks what runs under its worker."""
    return isinstance(asked.operation, Exchange) and asked.operation.list_running


@anyhow
def test_after_an_exchange_without_an_answer_outcomes_go_alone_then_the_claim_then_both(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3, C8, D5: and if it may have been committed, the next one asks what runs."""
    floor = Floor(store, clock, jobs=2, slots=3)
    floor.run_until_running(2)
    first, second = floor.jobs
    floor.enqueue(3)
    floor.faulty.fail(is_exchange, fate)
    floor.shell.finish(first)
    floor.timeline.run_until(lambda: floor.faulty.mended)
    floor.shell.slow_down(is_exchange, 0.5)
    floor.timeline.run_until(lambda: first in floor.succeeded() and not floor.shell.slow)
    floor.shell.finish(second)
    floor.run_to_the_end()
    asked = floor.faulty.asked_for(is_exchange)
    assert [form_of(each) for each in asked[:5]] == [CLAIM, BOTH, OUTCOMES, CLAIM, BOTH]
    assert lists_what_runs(asked[2]) == (fate is Fate.ANSWER_LOST)


@anyhow
def test_an_outage_is_told_once_and_waited_out_in_growing_steps_up_to_a_bound(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3."""
    floor, tries = Floor(store, clock, jobs=4, slots=2), 12
    floor.run_until_running(2)
    floor.faulty.fail(is_exchange, fate, tries)
    floor.shell.finish(floor.jobs[0])
    floor.timeline.run_until(lambda: floor.faulty.mended)
    assert floor.shell.noticed(NoticeDegraded) == [NoticeDegraded(WHY)]
    assert not floor.shell.noticed(NoticeRecovered)
    tried = [each.at for each in floor.faulty.asked_for(is_exchange) if each.fate is fate]
    waits = [(after - before).total_seconds() for before, after in pairwise(tried)]
    first, cap = floor.shell.node_options.fault_delay, floor.shell.node_options.fault_delay_cap
    assert waits == pytest.approx([min(first * 2**step, cap) for step in range(tries - 1)])
    assert waits[-3:] == pytest.approx([cap] * 3)
    floor.run_to_the_end()
    assert floor.shell.noticed(NoticeDegraded) == [NoticeDegraded(WHY)]
    assert floor.shell.noticed(NoticeRecovered) == [NoticeRecovered()]


@anyhow
def test_a_claim_that_the_store_chokes_on_keeps_no_outcome_from_being_recorded(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3."""
    floor = Floor(store, clock, jobs=2, slots=3)
    floor.run_until_running(2)
    finished = tuple(floor.jobs)
    floor.enqueue(3)
    floor.faulty.fail(claims, fate, FOR_EVER)
    for job_id in finished:
        floor.shell.finish(job_id)
    floor.timeline.run_until(lambda: set(finished) <= set(floor.succeeded()), within=SOON)
    floor.run_to_the_end()


@anyhow
def test_outcomes_that_the_store_chokes_on_keep_no_job_from_being_claimed(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3."""
    floor = Floor(store, clock, jobs=1, slots=3)
    floor.run_until_running(1)
    floor.faulty.fail(reports, fate, FOR_EVER)
    floor.shell.finish(floor.jobs[0])
    floor.timeline.run_until(lambda: floor.faulty.asked_for(reports))
    floor.enqueue(2)
    floor.run_until_running(2, within=SOON)
    floor.run_to_the_end()


@anyhow
def test_beats_without_an_answer_are_sent_again_and_cost_no_lease_in_time(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3, C4, C7."""
    floor = Floor(store, clock, jobs=1)
    floor.run_until_running(1)
    (before,) = store.perform_sync(ListWorkers())
    floor.faulty.fail(is_beat, fate, 20)
    floor.timeline.run_until(lambda: floor.shell.noticed(NoticeAnswered))
    (after,) = store.perform_sync(ListWorkers())
    assert (after.id, after.live) == (before.id, True)
    assert after.lease_expires_at == clock() + LEASE
    assert floor.shell.noticed(NoticeNoAnswer) == [NoticeNoAnswer(WHY)]
    floor.timeline.run_for(LEASE.total_seconds())
    assert not floor.shell.cancelled
    floor.shell.finish(floor.jobs[0])
    floor.run_to_the_end()
    assert details(store, floor.jobs[0]).record.attempt == 1


@anyhow
def test_upkeep_without_an_answer_is_tried_again(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3, C6."""
    abandoned = start(store, register(store), retry=AT_ONCE)
    clock.advance(LEASE)
    floor, tries = Floor(store, clock), 3
    floor.jobs.append(abandoned.id)
    floor.faulty.fail(is_upkeep, fate, tries)
    floor.timeline.run_until(lambda: len(floor.faulty.asked_for(is_upkeep)) > tries)
    tried = [each.at for each in floor.faulty.asked_for(is_upkeep)]
    interval = floor.shell.settings.maintenance_interval
    assert {after - before for before, after in pairwise(tried)} == {interval}
    floor.run_to_the_end()
    record = details(store, abandoned.id).record
    assert (record.attempt, record.lapses) == (2, 1)


@anyhow
def test_a_worker_whose_registration_has_no_answer_registers_as_soon_as_it_can(
    store: Store, clock: VirtualClock, fate: Fate
) -> None:
    """M3."""
    floor, tries = Floor(store, clock, jobs=2), 3
    floor.faulty.fail(is_registration, fate, tries)
    floor.timeline.run_until(lambda: floor.shell.noticed(NoticeAnswered))
    tried = [each.at for each in floor.faulty.asked_for(is_registration)]
    retry = timedelta(seconds=floor.shell.pulse_options.retry)
    assert [after - before for before, after in pairwise(tried)] == [retry] * tries
    assert floor.shell.noticed(NoticeNoAnswer) == [NoticeNoAnswer(WHY)]
    floor.run_to_the_end()


@pytest.mark.anyio
async def test_a_running_worker_outlives_every_fault_of_its_store_and_finishes_its_jobs(
    own_store: Store,
) -> None:
    """M3."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    faulty = FaultyStore(own_store, utc_now, heard=lambda: loop.call_soon_threadsafe(told.set))
    for fate in FAULTS:
        for fits in (claims, reports, is_upkeep):
            faulty.fail(fits, fate)
    faulty.fail(is_registration, Fate.NOT_REACHED)
    mill = Tidemill(store=faulty)

    @mill.job(GRIND, retry=AT_ONCE)
    async def grind() -> None:
        """Return at once."""

    refs = [await grind.enqueue() for _ in range(6)]
    async with mill.worker(concurrency=2) as worker, asyncio.timeout(PATIENT_SECONDS):
        ended = asyncio.ensure_future(worker.wait())
        ended.add_done_callback(lambda _: told.set())
        while not (faulty.mended and successes(faulty).keys() == {ref.id for ref in refs}):
            await told.wait()
            told.clear()
            assert not ended.done(), f"no fault of its store ends a worker: {ended}"
    await ended
    assert successes(faulty) == Counter(ref.id for ref in refs)
    assert own_store.perform_sync(ListWorkers()) == ()
