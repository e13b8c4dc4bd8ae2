"""The pump: what it does with the node's commands, and with what comes after the end."""

from __future__ import annotations

import asyncio

import pytest

from tidemill.core.commands import Drained, WakeAt
from tidemill.core.events import Hinted, Woken
from tidemill.shell.pump import Parts, Pump


class ScriptedNode:
    """Answers each step with the next list of commands, and keeps the events."""

    draining = False

    def __init__(self, *answers):
        self.answers = list(answers)
        self.heard = []

    def step(self, *events):
        self.heard.append(events)
        return self.answers.pop(0) if self.answers else []


def pump_of(node, clock=lambda: 0.0, **parts):
    return Pump(Parts(node, None, None, None, clock, **parts))


async def test_what_one_turn_of_the_loop_brings_reaches_the_node_together():
    node = ScriptedNode()
    pump = pump_of(node)
    pump.tell(Hinted(1.0))
    pump.tell(Hinted(2.0))
    await asyncio.sleep(0)
    assert node.heard == [(Hinted(1.0), Hinted(2.0))]


async def test_the_last_wish_to_be_woken_is_the_one_that_counts(wait_until):
    node = ScriptedNode([WakeAt(3600.0), WakeAt(0.0)])
    pump = pump_of(node)
    pump.tell(Hinted(0.0))
    await wait_until(lambda: len(node.heard) == 2)
    assert node.heard[1] == (Woken(0.0),)


async def test_a_wish_beside_the_end_is_not_granted():
    node = ScriptedNode([WakeAt(7200.0)], [Drained(2), WakeAt(3600.0)])
    pump = pump_of(node)
    for _ in range(2):
        pump.tell(Hinted(0.0))
        await asyncio.sleep(0)
    assert pump.drained.result() == 2
    assert pump._alarm.cancelled()


async def test_nothing_is_heard_after_the_end():
    node = ScriptedNode([Drained(0)])
    pump = pump_of(node)
    pump.tell(Hinted(0.0))
    await asyncio.sleep(0)
    pump.tell(Hinted(1.0))
    pump.tell_threadsafe(Hinted)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pump.fail(ValueError("too late to fail"))
    assert node.heard == [(Hinted(0.0),)]
    assert pump.drained.result() == 0


async def test_a_closed_loop_is_told_nothing():
    pumps = []

    def make():
        async def inside():
            pumps.append(pump_of(ScriptedNode()))

        asyncio.run(inside())

    await asyncio.to_thread(make)
    pumps[0].tell_threadsafe(Hinted)
    assert pumps[0]._inbox == []


class Clock:
    """Stands where a test puts it."""

    at = 0.0

    def __call__(self):
        return self.at


@pytest.mark.parametrize(("late", "lines"), [(20.0, 0), (20.5, 1)])
async def test_a_loop_that_stood_still_for_long_is_told_once_when_it_turns(caplog, late, lines):
    clock = Clock()
    pump = pump_of(ScriptedNode([WakeAt(3600.0)]), clock, stall=20.0)
    pump.tell(Hinted(0.0))
    await asyncio.sleep(0)
    clock.at = 3600.0 + late
    for _ in range(2):
        pump.tell(Hinted(clock.at))
        await asyncio.sleep(0)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == lines
    assert all(line.startswith("The event loop stood still for 20.5 s: ") for line in said)
