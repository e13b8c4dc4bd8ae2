"""The pulse: registering, beating, and knowing when the lease is gone (clauses A3, C4–C9)."""

from dataclasses import dataclass
from typing import Any

from tests.core.script import START, W1, W2, running

from tidemill.core.events import LeaseGained, LeaseLost, Listed
from tidemill.core.pulse import (
    BeatAnswered,
    CallFailed,
    Deregistered,
    DoBeat,
    DoDeregister,
    DoRegister,
    Doubted,
    NoticeAnswered,
    NoticeLeaseLost,
    NoticeNoAnswer,
    NoticeRegistered,
    NoticeStalled,
    Pulse,
    PulseCommand,
    PulseOptions,
    PulseStopped,
    RegisterAnswered,
    StopAsked,
    Tell,
    TickAt,
    Ticked,
)
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply
from tidemill.values.workers import RunningPair

CALLS = DoRegister | DoBeat | DoDeregister
OPTIONS = PulseOptions.for_lease(60.0)


@dataclass
class Played:
    """A pulse of a lease of 60 s, played by hand; one call in flight at most."""

    options: PulseOptions = OPTIONS

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.options)
        self.call: Any = None
        self.sent_at = 0.0
        self.tick_at = 0.0
        self.last: list[PulseCommand] = []
        self.log: list[PulseCommand] = []

    def tell(self, event: Any) -> list[PulseCommand]:
        if isinstance(event, RegisterAnswered | BeatAnswered | CallFailed | Deregistered):
            self.call = None
        self.last = self.pulse.step(event)
        self.log += self.last
        for command in self.last:
            if isinstance(command, CALLS):
                assert self.call is None, "two calls in flight"
                self.call, self.sent_at = command, event.at
            elif isinstance(command, TickAt):
                self.tick_at = command.at
        return self.last

    def tick(self, at: float, turned: float | None = None) -> list[PulseCommand]:
        return self.tell(Ticked(at, at if turned is None else turned))

    def registered(self, at: float, worker: WorkerId = W1) -> list[PulseCommand]:
        assert self.call == DoRegister()
        return self.tell(RegisterAnswered(at, self.sent_at, worker))

    def beaten(
        self, at: float, *pairs: RunningPair, live: bool = True, worker: WorkerId = W1
    ) -> list[PulseCommand]:
        assert self.call == DoBeat(worker)
        return self.tell(BeatAnswered(at, self.sent_at, BeatReply(worker, START, live, pairs)))

    def told(self) -> list[Any]:
        return [command.event for command in self.last if isinstance(command, Tell)]


def living(at: float = 0.0) -> Played:
    """A pulse that registered at `at`."""
    played = Played()
    played.tick(at)
    played.registered(at)
    return played


def test_the_first_tick_registers_a_worker() -> None:
    played = Played()
    assert played.tick(5.0) == [DoRegister()]
    played.registered(6.0)
    assert NoticeRegistered(W1) in played.last
    assert played.told() == [LeaseGained(6.0, W1, 5.0 + 60.0 - 10.0)]


def test_a_beat_goes_out_every_third_of_the_lease() -> None:
    played = living()
    assert played.tick_at == 20.0
    played.tick(19.0)
    assert played.call is None
    played.tick(20.0)
    assert played.call == DoBeat(W1)
    played.beaten(21.0)
    assert played.tick_at == 40.0, "counted from when the last one was sent"


def test_slow_answers_do_not_stretch_the_time_between_beats() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(45.0)
    assert played.call == DoBeat(W1), "the next beat is overdue"


def test_the_lease_is_trusted_from_when_the_last_answered_beat_was_sent() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(30.0, running(1))
    assert played.told() == [Listed(30.0, 20.0, W1, (running(1),), 20.0 + 60.0 - 10.0)]


def test_a_failed_beat_is_tried_again_soon_and_told_once() -> None:
    played = living()
    played.tick(20.0)
    played.tell(CallFailed(22.0, "cut off"))
    assert NoticeNoAnswer("cut off") in played.last
    assert played.tick_at == 23.0
    played.tick(23.0)
    assert played.call == DoBeat(W1)
    played.tell(CallFailed(24.0, "cut off"))
    assert NoticeNoAnswer("cut off") not in played.last
    played.tick(25.0)
    played.beaten(26.0)
    assert NoticeAnswered() in played.last
    played.tick(45.0)
    played.tell(CallFailed(46.0, "again"))
    assert NoticeNoAnswer("again") in played.last


def test_a_beat_that_is_answered_as_ever_is_not_told() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(21.0)
    assert NoticeAnswered() not in played.last


def test_a_failed_registration_is_tried_again_soon() -> None:
    played = Played()
    played.tick(0.0)
    played.tell(CallFailed(1.0, "refused"))
    assert played.tick_at == 2.0
    played.tick(2.0)
    assert played.call == DoRegister()


def test_a_lease_that_no_beat_renewed_is_lost_before_it_can_have_lapsed() -> None:
    played = living()
    at = 20.3
    while at < 50.0:
        played.tick(at)
        played.tell(CallFailed(at, "cut off"))
        assert not played.told()
        at = played.tick_at
    assert at == 50.0, "woken for it, whatever the next retry"
    played.tick(at)
    assert played.told() == [LeaseLost(50.0, W1)]
    assert played.call == DoRegister()
    played.registered(51.0, W2)
    assert played.told() == [LeaseGained(51.0, W2, 100.0)]


def test_a_beat_whose_answer_comes_too_late_still_counts_if_it_was_sent_in_time() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(55.0)
    assert [type(event) for event in played.told()] == [Listed]
    assert not [c for c in played.last if isinstance(c, NoticeLeaseLost)]


def test_an_answer_that_is_older_than_what_it_grants_ends_the_lease() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(71.0)
    assert played.told()[-1] == LeaseLost(71.0, W1)
    assert played.call == DoRegister()


def test_a_registration_answered_too_late_is_not_handed_out() -> None:
    played = Played()
    played.tick(0.0)
    played.registered(51.0)
    assert not any(isinstance(event, LeaseGained) for event in played.told())
    assert played.call == DoRegister()


def test_a_beat_that_finds_the_lease_dead_loses_it_and_registers_anew() -> None:
    played = living()
    played.tick(20.0)
    played.beaten(21.0, live=False)
    assert played.told() == [LeaseLost(21.0, W1)]
    assert [type(c) for c in played.last] == [NoticeLeaseLost, Tell, DoRegister]


def test_a_doubted_lease_is_lost_and_registered_anew() -> None:
    played = living()
    played.tell(Doubted(5.0, W1, "seen before"))
    assert played.told() == [LeaseLost(5.0, W1)]
    assert played.call == DoRegister()


def test_a_doubt_about_an_earlier_worker_is_ignored() -> None:
    played = living()
    played.tell(Doubted(5.0, W2, "seen before"))
    assert played.told() == []
    assert played.call is None


def test_an_answer_for_an_earlier_worker_is_ignored_and_a_new_one_registered_at_once() -> None:
    played = living()
    played.tick(20.0)
    played.tell(Doubted(21.0, W1, "seen before"))
    assert played.told() == [LeaseLost(21.0, W1)]
    played.beaten(22.0, running(1))
    assert played.told() == []
    assert played.call == DoRegister(), "not a whole heartbeat later"


def test_a_stalled_pump_is_told_once_and_its_lease_left_to_lapse() -> None:
    played = living()
    played.tick(20.0, turned=0.0)
    played.beaten(20.0)
    at = played.tick_at
    while at < 300.0:
        played.tick(at, turned=0.0)
        played.beaten(at)
        at = played.tick_at
    played.tick(301.0, turned=0.0)
    assert [c for c in played.last if isinstance(c, NoticeStalled)] == [NoticeStalled(W1, 301.0)]
    assert played.call is None
    lost = []
    for _ in range(100):
        played.tick(played.tick_at, turned=0.0)
        assert not [c for c in played.last if isinstance(c, NoticeStalled)]
        assert played.call is None
        lost += played.told()
    assert lost == [LeaseLost(280.0 + 50.0, W1)]


def test_a_pump_that_turns_again_is_beaten_for_again() -> None:
    played = living()
    played.tick(19.0)
    played.tick(49.0, turned=-300.0)
    assert played.call is None
    played.tick(49.5, turned=49.4)
    assert played.call == DoBeat(W1)


def test_a_pump_that_turns_again_after_the_lapse_gets_a_fresh_worker() -> None:
    played = living()
    played.tick(400.0, turned=0.0)
    assert played.told() == [LeaseLost(400.0, W1)]
    played.tick(401.0, turned=0.0)
    assert played.call is None
    played.tick(402.0, turned=401.9)
    assert played.call == DoRegister()


def test_stopping_deregisters_and_ends() -> None:
    played = living()
    played.tell(StopAsked(5.0))
    assert played.last == [DoDeregister(W1)]
    played.tell(Deregistered(6.0))
    assert played.last == [PulseStopped()]


def test_stopping_without_a_worker_ends_at_once() -> None:
    played = Played()
    assert played.tell(StopAsked(0.0)) == [PulseStopped()]


def test_stopping_gives_up_after_one_failed_deregistration() -> None:
    played = living()
    played.tell(StopAsked(5.0))
    played.tell(CallFailed(6.0, "cut off"))
    assert played.last[-1] == PulseStopped()


def test_stopping_waits_for_the_beat_in_flight_and_then_deregisters_at_once() -> None:
    played = living()
    played.tick(20.0)
    assert played.tell(StopAsked(21.0)) == []
    played.beaten(22.0)
    assert played.call == DoDeregister(W1)


def test_a_beat_that_fails_while_stopping_does_not_cost_the_deregistration() -> None:
    played = living()
    played.tick(20.0)
    played.tell(StopAsked(21.0))
    played.tell(CallFailed(22.0, "cut off"))
    assert played.call == DoDeregister(W1)


def test_a_registration_that_is_answered_while_stopping_is_taken_back_at_once() -> None:
    played = Played()
    played.tick(0.0)
    played.tell(StopAsked(1.0))
    played.registered(2.0)
    assert played.told() == []
    assert played.call == DoDeregister(W1)


def test_a_registration_that_fails_while_stopping_ends() -> None:
    played = Played()
    played.tick(0.0)
    played.tell(StopAsked(1.0))
    played.tell(CallFailed(2.0, "cut off"))
    assert played.last[-1] == PulseStopped()


def test_stopping_does_not_wait_for_a_stalled_pump() -> None:
    played = living()
    played.tick(49.0, turned=-300.0)
    played.tell(StopAsked(49.5))
    assert played.call == DoDeregister(W1)


def test_the_end_is_told_once_and_is_silent_afterwards() -> None:
    played = living()
    played.tell(StopAsked(5.0))
    played.tell(Deregistered(6.0))
    assert played.tick(7.0) == []
    assert played.tell(StopAsked(8.0)) == []
    assert played.tell(Doubted(9.0, W1, "late")) == []


def test_no_tick_is_asked_for_in_the_past() -> None:
    played = Played()
    at = 0.0
    for turn in range(300):
        played.tick(at, turned=at if turn % 7 else at - 400.0)
        if played.call == DoRegister():
            played.tell(RegisterAnswered(at, at, WorkerId(W1)))
        elif played.call is not None:
            ending = CallFailed(at, "cut off") if turn % 3 else None
            played.tell(ending or BeatAnswered(at, at, BeatReply(W1, START, live=turn % 5 != 0)))
        if played.call is None:
            assert played.tick_at > at
            at = played.tick_at


def test_the_proportions_leave_room_for_retries_before_the_lease_is_given_up() -> None:
    for lease in (0.6, 6.0, 60.0, 600.0):
        options = PulseOptions.for_lease(lease)
        assert options.heartbeat == lease / 3
        assert options.heartbeat + 3 * options.retry <= lease - options.margin
        assert options.retry <= options.margin
