"""The store of the kit that fails to order."""

from contextlib import ExitStack

import pytest

from tidemill.conformance.faulty import WHY, Asked, Fate, FaultyStore, is_beat, is_registration
from tidemill.conformance.scenes import LEASE, register, worker_info
from tidemill.errors import AnswerLost, StoreUnavailable
from tidemill.store.lease import Beat, Register
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.store.monitor import ListWorkers

WAYS = ["a thread", "a coroutine", "a heart"]


async def asked(faulty: FaultyStore, way: str, operation) -> object:
    if way == "a coroutine":
        return await faulty.perform(operation)
    with ExitStack() as stack:
        if way == "a heart":
            return stack.enter_context(faulty.dedicated()).perform(operation)
        return faulty.perform_sync(operation)


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore(VirtualClock())


@pytest.fixture
def faulty(inner: MemoryStore) -> FaultyStore:
    return FaultyStore(inner, VirtualClock())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("fate", "error", "there"),
    [(Fate.NOT_REACHED, StoreUnavailable, 0), (Fate.ANSWER_LOST, AnswerLost, 1)],
)
async def test_a_fault_befalls_as_many_operations_as_were_meant_and_each_is_written_down(
    inner: MemoryStore, faulty: FaultyStore, *, way: str, fate: Fate, error: type, there: int
) -> None:
    operation = Register(info=worker_info(), lease=LEASE)
    faulty.fail(is_registration, fate)
    with pytest.raises(error, match=WHY):
        await asked(faulty, way, operation)
    assert len(inner.perform_sync(ListWorkers())) == there
    assert faulty.mended
    reply = await asked(faulty, way, operation)
    assert [each.fate for each in faulty.asked] == [fate, Fate.ANSWERED]
    assert [each.answer for each in faulty.asked] == [reply if there else None, reply]


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_not_meant_is_answered_as_the_store_does(
    inner: MemoryStore, faulty: FaultyStore, way: str
) -> None:
    beat = Beat(worker=register(inner), lease=LEASE)
    faulty.fail(is_registration, Fate.NOT_REACHED)
    reply = await asked(faulty, way, beat)
    assert reply == inner.perform_sync(beat)
    assert faulty.asked_for(is_beat) == [Asked(VirtualClock()(), beat, Fate.ANSWERED, reply)]
    assert not faulty.mended
    faulty.mend()
    assert faulty.mended


def test_who_wants_to_hear_hears_of_each_operation() -> None:
    heard = []
    faulty = FaultyStore(MemoryStore(VirtualClock()), VirtualClock(), lambda: heard.append(1))
    faulty.fail(is_registration, Fate.NOT_REACHED)
    with pytest.raises(StoreUnavailable):
        faulty.perform_sync(Register(info=worker_info(), lease=LEASE))
    faulty.perform_sync(ListWorkers())
    assert heard == [1, 1]
