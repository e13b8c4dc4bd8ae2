"""Virtual time for what is to happen."""

from datetime import timedelta

import pytest

from tidemill.conformance.timeline import FOR_EVER, Timeline
from tidemill.store.memory import VirtualClock


def test_acts_happen_in_the_order_of_their_instants_and_the_clock_follows() -> None:
    clock = VirtualClock()
    start, timeline, told = clock(), Timeline(clock), []
    for at in (2.0, 1.0, 2.0, FOR_EVER):
        timeline.at(at, lambda at=at: told.append((at, clock() - start)))
    timeline.run_for(3.0)
    assert [at for at, _ in told] == [1.0, 2.0, 2.0]
    assert all(passed == timedelta(seconds=at) for at, passed in told)
    assert (timeline.now, clock()) == (3.0, start + timedelta(seconds=3))


def test_an_instant_that_has_passed_is_now() -> None:
    timeline, told = Timeline(VirtualClock()), []
    timeline.run_for(5.0)
    timeline.at(1.0, lambda: told.append(timeline.now))
    timeline.run_until(lambda: told)
    assert told == [5.0]


def test_what_comes_too_late_or_never_is_an_error() -> None:
    timeline = Timeline(VirtualClock())
    timeline.after(2.0, lambda: None)
    with pytest.raises(AssertionError, match="within 1 s"):
        timeline.run_until(lambda: False, within=1.0)
    with pytest.raises(AssertionError, match="nothing more happens"):
        timeline.run_until(lambda: False)


def test_a_machine_that_spins_is_an_error() -> None:
    timeline = Timeline(VirtualClock())

    def spin() -> None:
        timeline.after(0.0, spin)

    spin()
    with pytest.raises(AssertionError, match="something spins"):
        timeline.run_until(lambda: False)
