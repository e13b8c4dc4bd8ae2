"""Jobs that end badly are raised out of the run, with the handler's own exception as the cause."""

from datetime import timedelta
from typing import Any

import pytest

from tidemill import Discard, JobContext, Retry, Tidemill
from tidemill.errors import DeclarationError
from tidemill.testing import Harness, JobFailed


class Declined(Exception):
    """The card was."""


async def test_a_dead_job_raises_its_last_error(mill: Tidemill, h: Harness) -> None:
    raised: list[Exception] = []

    def fail() -> None:
        raised.append(Declined(f"no {len(raised)}"))
        raise raised[-1]

    @mill.job("coroutine", retry=Retry.immediate(max_attempts=2))
    async def coroutine() -> None:
        fail()

    @mill.job("plain", retry=Retry.immediate(max_attempts=2))
    def plain() -> None:
        fail()

    for handle in (coroutine, plain):
        ref = await handle.enqueue()
        with pytest.raises(
            JobFailed, match=r"attempts-exhausted\) after attempt 2: .*Declined: no"
        ):
            await h.run_until_idle()
        assert (await h.job(ref)).state == "dead"
        with pytest.raises(JobFailed) as failed:
            await _rerun(mill, h, ref)
        assert failed.value.__cause__ is raised[-1]
        assert failed.value.job.state == "dead"
        assert failed.value.job.id != ref.id


async def _rerun(mill: Tidemill, h: Harness, ref: Any) -> None:
    await mill.jobs.rerun(ref, actor="ann")
    await h.run_until_idle()


async def test_a_failure_that_is_not_the_last_raises_nothing(mill: Tidemill, h: Harness) -> None:
    @mill.job("job", retry=Retry.fixed(timedelta(seconds=1), max_attempts=2))
    async def job() -> None:
        raise Declined

    await job.enqueue()
    assert await h.run_until_idle() == 1
    await h.advance(seconds=1)
    with pytest.raises(JobFailed):
        await h.run_until_idle()
    assert await h.run_until_idle() == 0


async def test_the_rest_has_run_when_it_is_raised(mill: Tidemill, h: Harness) -> None:
    @mill.job("bad", retry=Retry.never())
    async def bad(number: int) -> None:
        raise Declined(number)

    @mill.job("good")
    async def good() -> None:
        """Do nothing."""

    for number in (1, 2):
        await bad.enqueue(number)
    ref = await good.enqueue()
    with pytest.raises(JobFailed, match="Declined: 1") as failed:
        await h.run_until_idle()
    (note,) = failed.value.__notes__
    assert "Declined: 2" in note
    assert (await h.job(ref)).state == "succeeded"


async def test_it_is_not_raised_when_it_is_asked_not_to_be(mill: Tidemill, h: Harness) -> None:
    @mill.job("bad", retry=Retry.never())
    def bad() -> None:
        raise Declined("no")

    ref = await bad.enqueue()
    assert await h.run_until_idle(raise_errors=False) == 1
    job = await h.job(ref)
    assert (job.state, job.cause) == ("dead", "attempts-exhausted")
    assert job.error is not None
    assert job.error.message == "no"


async def test_a_discarded_job_raises_too(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job() -> None:
        raise Discard("hopeless")

    await job.enqueue()
    with pytest.raises(JobFailed, match=r"\(discarded\).*hopeless") as failed:
        await h.run_until_idle()
    assert isinstance(failed.value.__cause__, Discard)


async def test_an_output_that_cannot_be_stored_has_no_object_at_hand(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("job", retry=Retry.immediate(max_attempts=2))
    async def job(context: JobContext) -> object:
        if context.attempt == 1:
            raise Declined("first")
        return object()

    await job.enqueue()
    with pytest.raises(JobFailed, match="output of 'job' cannot be written") as failed:
        await h.run_until_idle()
    assert failed.value.__cause__ is None


async def test_a_cancelled_job_raises_nothing(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job() -> None:
        raise Declined

    ref = await job.enqueue()
    await h.cancel(ref)
    assert await h.run_until_idle() == 0
    found = await h.job(ref)
    assert (found.state, found.cause) == ("cancelled", "operator:harness")


async def test_an_expired_job_is_cancelled(mill: Tidemill, h: Harness) -> None:
    @mill.job("job")
    async def job() -> None:
        """Do nothing."""

    ref = await job.with_options(expires="1h").enqueue()
    await h.advance(hours=1)
    assert await h.run_until_idle() == 0
    assert (await h.job(ref)).cause == "expired"


async def test_a_job_that_cannot_run_is_told_before_anything_runs(
    mill: Tidemill, h: Harness
) -> None:
    @mill.job("good")
    async def good() -> None:
        """Do nothing."""

    @mill.job("bad")
    async def bad(what: "Nowhere") -> None:  # noqa: F821 - the fault
        """Do nothing."""

    await good.enqueue()
    with pytest.raises(DeclarationError, match="Nowhere"):
        await h.run_until_idle()
    assert [job.state for job in await h.jobs()] == ["ready"]
