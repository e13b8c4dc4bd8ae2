"""Workers that cannot renew their lease (clauses C7, C10), the real node and pulse on virtual time.

What a worker trusts is measured on its own clock and ends before the lease does, which is on the
store's: so each of these facts asks the store whether the lease still lived.
"""

from __future__ import annotations

from tidemill.conformance.faulty import Fate, claims, is_beat, is_exchange, of_the_heart, reports
from tidemill.conformance.floor import Floor
from tidemill.conformance.plugin import BlockWriters
from tidemill.conformance.scenes import (
    AT_ONCE,
    LEASE,
    MICROSECOND,
    beat,
    details,
    maintain,
    register,
    start,
    state_of,
)
from tidemill.conformance.timeline import FOR_EVER
from tidemill.conformance.virtual_shell import Cancelled
from tidemill.core.pulse import NoticeLeaseLost, NoticeRegistered
from tidemill.errors import StoreUnavailable
from tidemill.store.complete import IsLeaseLive
from tidemill.store.contract import Store
from tidemill.store.exchange import Exchange
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.endings import CancelReason
from tidemill.values.ids import Attempt, WorkerId
from tidemill.values.states import JobState
from tidemill.values.workers import Pair


def busy_floor(store: Store, clock: VirtualClock, *, stubborn: bool = False) -> Floor:
    """A floor with one slot, and a handler in it that returns when a fact says so."""
    floor = Floor(store, clock, jobs=1, stubborn=stubborn)
    floor.run_until_running(1)
    return floor


def only_worker(floor: Floor) -> WorkerId:
    """Under which id the floor's worker has registered, if it did so once."""
    (registered,) = floor.shell.noticed(NoticeRegistered)
    return registered.worker


def is_lease_live(floor: Floor) -> bool:
    """Whether the lease of the floor's worker lives, on the store's clock."""
    return floor.store.perform_sync(IsLeaseLive(only_worker(floor)))


def assert_cancelled_in_time(floor: Floor) -> None:
    """Let time pass until the handler is cancelled: its lease, lost to it, still lives."""
    floor.timeline.run_until(lambda: floor.shell.cancelled)
    told = Cancelled(floor.timeline.now, Pair(floor.jobs[0], Attempt(1)), CancelReason.LEASE_LOST)
    assert floor.shell.cancelled == [told]
    assert is_lease_live(floor)


def test_a_worker_that_cannot_renew_cancels_its_handlers_before_its_lease_can_have_lapsed(
    store: Store, clock: VirtualClock
) -> None:
    """C7, G3."""
    floor = busy_floor(store, clock)
    floor.timeline.run_for(LEASE.total_seconds())
    floor.faulty.fail(of_the_heart, Fate.NOT_REACHED, FOR_EVER)
    assert_cancelled_in_time(floor)


def test_how_long_a_lease_is_trusted_counts_from_when_the_last_answered_beat_was_sent(
    store: Store, clock: VirtualClock
) -> None:
    """C7: the answer took longer than the margin, and the lease is none the longer for it."""
    floor = busy_floor(store, clock)
    pulse = floor.shell.pulse_options
    slow = pulse.margin + pulse.heartbeat / 4
    assert slow < pulse.heartbeat
    floor.shell.slow_down(is_beat, slow)
    floor.timeline.run_until(lambda: floor.faulty.asked_for(is_beat))
    floor.faulty.fail(of_the_heart, Fate.NOT_REACHED, FOR_EVER)
    sent_at = floor.timeline.now
    assert_cancelled_in_time(floor)
    assert floor.timeline.now > sent_at + pulse.heartbeat + slow


def test_a_worker_whose_heart_is_stuck_in_a_beat_cancels_its_handlers_in_time_all_the_same(
    store: Store, clock: VirtualClock
) -> None:
    """C7, C9: and although no exchange is answered either."""
    floor = busy_floor(store, clock)
    floor.faulty.fail(is_beat, Fate.NOT_REACHED)
    floor.faulty.fail(is_exchange, Fate.NOT_REACHED, FOR_EVER)
    floor.shell.slow_down(is_beat, FOR_EVER)
    assert_cancelled_in_time(floor)


def test_a_worker_without_a_live_lease_claims_nothing_until_it_has_registered_anew(
    store: Store, clock: VirtualClock
) -> None:
    """C7, A3."""
    floor = busy_floor(store, clock)
    floor.faulty.fail(of_the_heart, Fate.NOT_REACHED, FOR_EVER)
    floor.timeline.run_until(lambda: floor.shell.noticed(NoticeLeaseLost))
    claimed_before = len(floor.faulty.asked_for(claims))
    floor.enqueue(2)
    floor.timeline.run_for(3 * LEASE.total_seconds())
    assert len(floor.faulty.asked_for(claims)) == claimed_before
    floor.run_to_the_end()
    before, after = (each.worker for each in floor.shell.noticed(NoticeRegistered))
    assert before != after
    asked = [each.operation for each in floor.faulty.asked_for(claims)[claimed_before:]]
    assert {exchange.worker for exchange in asked if isinstance(exchange, Exchange)} == {after}


def test_what_a_handler_did_after_its_lease_was_lost_is_dropped_and_its_slot_is_kept_to_its_end(
    store: Store, clock: VirtualClock
) -> None:
    """C5, C7, G3."""
    floor = busy_floor(store, clock, stubborn=True)
    (job_id,) = floor.jobs
    floor.faulty.fail(of_the_heart, Fate.NOT_REACHED, FOR_EVER)
    floor.timeline.run_until(lambda: floor.shell.cancelled)
    floor.faulty.mend()
    floor.timeline.run_until(lambda: state_of(store, job_id) is JobState.READY)
    floor.timeline.run_for(LEASE.total_seconds())
    assert floor.shell.executed == [Pair(job_id, Attempt(1))], "its slot is not free"
    floor.shell.finish(job_id)
    again = Pair(job_id, Attempt(2))
    floor.timeline.run_until(lambda: again in floor.shell.executed)
    assert not floor.faulty.asked_for(reports)
    floor.run_to_the_end()
    record = details(store, job_id).record
    assert (record.attempt, record.lapses, record.failures) == (2, 1, 0)


def test_a_reply_to_an_earlier_incarnation_is_dropped(store: Store, clock: VirtualClock) -> None:
    """C7: what it had claimed is left to lapse, and then run under the live lease."""
    floor = Floor(store, clock)
    pulse = floor.shell.pulse_options
    floor.faulty.fail(is_beat, Fate.NOT_REACHED, FOR_EVER)
    floor.timeline.run_for(pulse.lease - pulse.margin - 2.0)
    (job_id,) = floor.enqueue(1)
    floor.shell.slow_down(claims, 5.0)
    floor.timeline.run_until(lambda: state_of(store, job_id) is JobState.RUNNING)
    floor.timeline.run_until(lambda: floor.shell.noticed(NoticeRegistered)[1:])
    floor.faulty.mend()
    asked_before = len(floor.faulty.asked_for(is_exchange))
    floor.timeline.run_until(lambda: len(floor.faulty.asked_for(is_exchange)) > asked_before)
    assert not floor.shell.executed
    floor.run_to_the_end()
    assert floor.shell.executed == [Pair(job_id, Attempt(2))]


def test_while_nobody_can_write_and_for_a_lease_after_it_no_lapse_is_declared(
    store: Store, clock: VirtualClock, block_writers: BlockWriters
) -> None:
    """C10: where no writer can block all others, a heart beats on meanwhile."""
    job = start(store, register(store), retry=AT_ONCE)
    with block_writers():
        beats = [beat_in(store, clock, job.worker) for _ in range(4)]
    assert len(set(beats)) == 1, "either all of them were blocked or none"
    for _ in range(3):
        assert maintain(store).lapsed == ()
        clock.advance(LEASE / 3 - MICROSECOND)
    assert maintain(store).lapsed == ()
    clock.advance(3 * MICROSECOND)
    assert [lapsed.job_id for lapsed in maintain(store).lapsed] == [job.id]


def beat_in(store: Store, clock: VirtualClock, worker: WorkerId) -> bool:
    """Let a third of the lease pass and beat; answer whether the store could."""
    clock.advance(LEASE / 3)
    try:
        assert beat(store, worker).live
    except StoreUnavailable:
        return False
    return True
