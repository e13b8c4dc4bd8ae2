"""Asserting what was enqueued, with a failure that shows what was."""

from dataclasses import dataclass
from unittest.mock import ANY

import pytest

from tidemill import JobContext, Tidemill
from tidemill.testing import Harness


@dataclass
class Order:
    number: int


async def test_jobs_are_found_by_their_arguments_as_the_handler_gets_them(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("sell", aliases=["old.sell"])
    async def sell(context: JobContext, order: Order, words: tuple[str, ...] = ("a",)) -> None:
        """Do nothing."""

    first = await sell.enqueue(Order(1))
    second = await sell.enqueue(Order(2), words=("b", "c"))
    assert [job.id for job in h.enqueued(sell)] == [first.id, second.id]
    assert [job.id for job in h.enqueued(sell, order=Order(2))] == [second.id]
    assert [job.id for job in h.enqueued(sell, order=ANY, words=("a",))] == [first.id]
    assert await h.run_until_idle() == 2
    (found,) = h.enqueued(sell, order=Order(1))
    assert found.state == "succeeded"
    h.not_enqueued(sell, order=Order(3))


async def test_a_failure_lists_what_was_enqueued(mill: Tidemill, h: Harness) -> None:
    @mill.job("remind")
    async def remind(customer: str) -> None:
        """Do nothing."""

    @mill.job("other")
    async def other() -> None:
        """Do nothing."""

    with pytest.raises(AssertionError) as failed:
        h.enqueued(remind, customer="c-9")
    assert str(failed.value) == "remind(customer='c-9') was not enqueued. Nothing was."
    await other.with_options(queue="slow", delay="1h").enqueue()
    await remind.enqueue("c-1")
    with pytest.raises(AssertionError) as failed:
        h.enqueued(remind, customer="c-9")
    assert str(failed.value).splitlines() == [
        "remind(customer='c-9') was not enqueued. Enqueued:",
        "  remind(customer='c-1')  [ready, queue default, due 2026-03-01T00:00:00+00:00]",
        "  other()  [scheduled, queue slow, due 2026-03-01T01:00:00+00:00]",
    ]
    with pytest.raises(AssertionError, match=r"^remind\(\) was enqueued. Enqueued:\n  remind\("):
        h.not_enqueued(remind)


async def test_a_long_list_is_cut(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job(number: int) -> None:
        """Do nothing."""

    await mill.enqueue_many([job.bind(number) for number in range(30)])
    with pytest.raises(AssertionError, match=r"and 10 more$"):
        h.enqueued(job, number=99)


async def test_a_mistyped_expectation_is_no_failure_but_an_error(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("job")
    async def job(context: JobContext, number: int) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="'job' has no parameter 'nummer'; it has 'number'"):
        h.enqueued(job, nummer=1)
    with pytest.raises(TypeError, match="'context'"):
        h.not_enqueued(job, context=1)
    stranger = Tidemill()

    @stranger.job("strange")
    async def strange() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="'strange' is not a job of this app"):
        h.enqueued(strange)


async def test_what_was_found_can_be_looked_at_again_and_cancelled(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("sell")
    async def sell() -> None:
        """Do nothing."""

    await sell.with_options(delay="1d").enqueue()
    (found,) = h.enqueued(sell)
    await h.cancel(found)
    assert (found.state, (await h.job(found)).state) == ("scheduled", "cancelled")


def test_the_same_in_a_test_without_a_loop(mill: Tidemill, h: Harness) -> None:
    @mill.job("sell")
    async def sell() -> None:
        """Do nothing."""

    sell.with_options(delay="1d").sync.enqueue()
    (found,) = h.enqueued(sell)
    h.sync.cancel(found)
    assert h.sync.job(found).state == "cancelled"
