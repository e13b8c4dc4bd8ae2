"""What a node holds, and the slots it takes."""

from tests.core.script import W1, W2, pair_of

from tidemill.core.holdings import Holdings, Pending, Running
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.workers import Pair


def pending(number: int, worker=W1, **how) -> Pending:
    job_id, attempt = pair_of(number)
    return Pending(
        worker, Outcome(job_id=job_id, attempt=attempt, verdict=Verdict.SUCCEEDED), **how
    )


def holding(*entries: Pending, slots: int = 10) -> Holdings:
    holdings = Holdings(slots)
    holdings.pending.extend(entries)
    return holdings


def loaded(holdings: Holdings, at: float = 0.0, limit: int = 10) -> list[Pair]:
    return [entry.pair for entry in holdings.load(at, limit)]


def test_running_waiting_and_reserved_take_slots_and_what_travels_frees_its_own() -> None:
    holdings = holding(pending(1), pending(2))
    holdings.start(Running(W1, pair_of(3), 0.0))
    holdings.reserved = 4
    assert holdings.free == 10 - 1 - 2 - 4
    holdings.load(0.0, 1)
    assert holdings.free == 10 - 1 - 1 - 4
    holdings.put_back(holdings.unload())
    assert holdings.free == 10 - 1 - 2


def test_outcomes_travel_oldest_first_up_to_the_limit() -> None:
    holdings = holding(pending(3), pending(1), pending(2))
    assert loaded(holdings, limit=2) == [pair_of(3), pair_of(1)]


def test_outcomes_of_one_worker_travel_together_whatever_stands_between() -> None:
    holdings = holding(pending(1), pending(2, W2), pending(3))
    assert loaded(holdings) == [pair_of(1), pair_of(3)]
    holdings.unload()
    assert loaded(holdings) == [pair_of(2)]


def test_an_outcome_is_not_offered_before_its_time() -> None:
    holdings = holding(pending(1, not_before=5.0), pending(2))
    assert loaded(holdings, at=4.9) == [pair_of(2)]
    holdings.unload()
    assert loaded(holdings, at=4.9) == []
    assert loaded(holdings, at=5.0) == [pair_of(1)]


def test_an_outcome_that_goes_alone_has_no_company_either_way() -> None:
    holdings = holding(pending(1), pending(2, alone=True), pending(3))
    assert loaded(holdings) == [pair_of(1), pair_of(3)]
    holdings.unload()
    assert loaded(holdings) == [pair_of(2)]


def test_what_comes_back_goes_first_again_in_its_order() -> None:
    holdings = holding(pending(1), pending(2), pending(3))
    holdings.load(0.0, 2)
    holdings.put_back(holdings.unload())
    assert loaded(holdings) == [pair_of(1), pair_of(2), pair_of(3)]


def test_what_comes_back_alone_goes_last() -> None:
    holdings = holding(pending(1), pending(2))
    holdings.load(0.0, 1)
    holdings.put_back(holdings.unload())
    assert loaded(holdings) == [pair_of(2), pair_of(1)]


def test_running_waiting_and_travelling_pairs_are_known_for_their_worker() -> None:
    holdings = holding(pending(1), pending(2), pending(3, W2))
    holdings.start(Running(W1, pair_of(4), 0.0))
    holdings.start(Running(W2, pair_of(5), 0.0))
    holdings.load(0.0, 1)
    assert holdings.known_pairs(W1) == {pair_of(1), pair_of(2), pair_of(4)}
    assert holdings.known_pairs(W2) == {pair_of(3), pair_of(5)}


def test_the_latest_attempts_are_remembered_and_no_more_than_so_many() -> None:
    holdings = Holdings(1)
    for attempt in range(1, 5_001):
        holdings.start(Running(W1, pair_of(1, attempt), 0.0))
    assert holdings.has_seen(pair_of(1, 5_000))
    assert not holdings.has_seen(pair_of(1, 1))
    assert sum(holdings.has_seen(pair_of(1, attempt)) for attempt in range(1, 5_001)) == 4_096


def test_an_abandoned_attempt_takes_its_slot_but_is_not_waited_for() -> None:
    holdings = Holdings(1)
    running = Running(W1, pair_of(1), 0.0)
    holdings.start(running)
    assert not holdings.settled
    running.abandoned = True
    assert holdings.settled
    assert holdings.free == 0
