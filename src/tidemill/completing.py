"""Completing an attempt in its handler's own transaction (clause D8)."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from tidemill.bridges.join import AsyncJoined, Joined, join
from tidemill.bridges.kinds import kind_of
from tidemill.errors import AlreadyCompleted, BoundExceeded, StaleAttempt, WrongContext
from tidemill.shell.completion import Completion
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.contract import Store
from tidemill.values.bounds import Bounds
from tidemill.values.jobs import Claimed, NewJob
from tidemill.values.outcomes import Answer, Reported
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True)
class Completer:
    """Writes the success of one attempt.

    Args:
        job: the attempt's job, as it was claimed.
        completion: how its worker hears of it.
        store: where the job is stored; None where this process has none. One that does not persist,
            as that of a test, is in no transaction: there the handler's return commits the success.
        bounds: what the output is held against.
    """

    job: Claimed
    completion: Completion
    store: Store | None
    bounds: Bounds

    def complete_in(
        self, tx: object, output: object, tags: frozenset[Tag], children: tuple[NewJob, ...]
    ) -> Coroutine[Any, Any, None] | None:
        """Write it in `tx`, or answer the coroutine that does, as that is sync or async."""
        written = self._written(output)
        job = self.job
        success = Complete(
            job_id=job.id,
            attempt=job.attempt,
            worker=job.worker,
            output=written,
            tags=tags,
            children=children,
        )
        store = self._present_store()
        if not store.capabilities.persistent:
            return self._keep(written, awaited=kind_of(tx).awaited)
        joined = join(store, tx)
        if isinstance(joined, AsyncJoined):
            return self._complete_async(store, joined, success)
        self._complete(store, joined, success)
        return None

    def _present_store(self) -> Store:
        if self.store is None:
            message = (
                f"Job {self.job.id} cannot be completed from here: the app was given its store as "
                "an object, which this process does not have. Give the app a URL."
            )
            raise WrongContext(message)
        return self.store

    def _written(self, output: object) -> bytes | None:
        written = self.completion.encode_output(output)
        size = 0 if written is None else len(written)
        if size > self.bounds.output_bytes:
            raise BoundExceeded("Output", size, self.bounds.output_bytes, "bytes")
        return written

    def _keep(self, written: bytes | None, *, awaited: bool) -> Coroutine[Any, Any, None] | None:
        if awaited:
            return self._keep_async(written)
        self.completion.keep(written)
        return None

    async def _keep_async(self, written: bytes | None) -> None:
        self.completion.keep(written)

    def _complete(self, store: Store, joined: Joined, success: Complete) -> None:
        self.completion.begin()
        _require_lease(success, live=store.perform_sync(IsLeaseLive(success.worker)))
        _require_applied(success, joined.perform(success))

    async def _complete_async(self, store: Store, joined: AsyncJoined, success: Complete) -> None:
        self.completion.begin()
        _require_lease(success, live=await store.perform(IsLeaseLive(success.worker)))
        _require_applied(success, await joined.perform(success))


def _require_lease(success: Complete, *, live: bool) -> None:
    if not live:
        raise _stale(success, f"the lease of worker {success.worker} is over")


def _require_applied(success: Complete, said: Reported) -> None:
    if said.answer is Answer.APPLIED:
        return
    if said.answer is Answer.ALREADY_APPLIED:
        message = (
            f"Attempt {success.attempt} of job {success.job_id} is completed already, by an "
            "earlier call; nothing was written now. If that was in an earlier transaction, it has "
            "committed: let this error out, so that what this one wrote again is rolled back. If "
            "it was in this one, call complete_in once for each transaction."
        )
        raise AlreadyCompleted(message)
    if said.holder is None:
        raise _stale(success, "the job is not there any more")
    by = "" if said.holder.worker is None else f" by worker {said.holder.worker}"
    why = f"the job is {said.holder.state}{by}, in attempt {said.holder.attempt}"
    raise _stale(success, why)


def _stale(success: Complete, why: str) -> StaleAttempt:
    return StaleAttempt(
        f"Attempt {success.attempt} of job {success.job_id} cannot complete it: {why}. Nothing was "
        "written. Roll the transaction back: the job runs, or has run, elsewhere."
    )
