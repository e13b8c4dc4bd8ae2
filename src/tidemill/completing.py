"""Completing an attempt in its handler's own transaction (clause D8)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tidemill.bridges.join import AsyncJoined, Joined, join
from tidemill.bridges.kinds import kind_of
from tidemill.errors import AlreadyCompleted, BoundExceeded, StaleAttempt, WrongContext
from tidemill.shell.talk import AttemptTalk
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.contract import Store
from tidemill.values.bounds import Bounds
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import Answer, Reported
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True)
class Completer:
    """Writes the success of one attempt.

    Args:
        job: the attempt's job, as it was claimed.
        talk: how its worker hears of it, and what goes with it.
        tags: the tags that the attempt has added by now.
        store: where the job is stored; None where this process has none. One that does not persist,
            as that of a test, is in no transaction: there the handler's return commits the success.
        bounds: what the output is held against.
    """

    job: Claimed
    talk: AttemptTalk
    tags: Callable[[], frozenset[Tag]]
    store: Store | None
    bounds: Bounds

    def complete_in(self, tx: object, output: object) -> Coroutine[Any, Any, None] | None:
        """Write it in `tx`, or answer the coroutine that does, as that is sync or async.

        What goes with it is what the attempt has added and left when it is written.
        """
        written = self._written(output)
        store = self._present_store()
        if not store.capabilities.persistent:
            return self._keep(written, awaited=kind_of(tx).awaited)
        joined = join(store, tx)
        if isinstance(joined, AsyncJoined):
            return self._complete_async(store, joined, written)
        self._complete(store, joined, written)
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
        written = self.talk.completion.encode_output(output)
        size = 0 if written is None else len(written)
        if size > self.bounds.output_bytes:
            raise BoundExceeded("Output", size, self.bounds.output_bytes, "bytes")
        return written

    def _success(self, written: bytes | None) -> Complete:
        job = self.job
        return Complete(
            job_id=job.id,
            attempt=job.attempt,
            worker=job.worker,
            output=written,
            tags=self.tags(),
            children=self.talk.leaving.seal(),
        )

    def _keep(self, written: bytes | None, *, awaited: bool) -> Coroutine[Any, Any, None] | None:
        if awaited:
            return self._keep_async(written)
        self._keep_now(written)
        return None

    async def _keep_async(self, written: bytes | None) -> None:
        self._keep_now(written)

    def _keep_now(self, written: bytes | None) -> None:
        self.talk.leaving.seal()
        self.talk.completion.keep(written, self.tags())

    def _complete(self, store: Store, joined: Joined, written: bytes | None) -> None:
        self.talk.completion.begin()
        self._require_lease(live=store.perform_sync(IsLeaseLive(self.job.worker)))
        _require_applied(self.job, joined.perform(self._success(written)))

    async def _complete_async(
        self, store: Store, joined: AsyncJoined, written: bytes | None
    ) -> None:
        self.talk.completion.begin()
        self._require_lease(live=await store.perform(IsLeaseLive(self.job.worker)))
        _require_applied(self.job, await joined.perform(self._success(written)))

    def _require_lease(self, *, live: bool) -> None:
        if not live:
            raise _stale(self.job, f"the lease of worker {self.job.worker} is over")


def _require_applied(job: Claimed, said: Reported) -> None:
    if said.answer is Answer.APPLIED:
        return
    if said.answer is Answer.ALREADY_APPLIED:
        message = (
            f"Attempt {job.attempt} of job {job.id} is completed already, by an earlier call; "
            "nothing was written now. If that was in an earlier transaction, it has committed: let "
            "this error out, so that what this one wrote again is rolled back. If it was in this "
            "one, call complete_in once for each transaction."
        )
        raise AlreadyCompleted(message)
    if said.holder is None:
        raise _stale(job, "the job is not there any more")
    by = "" if said.holder.worker is None else f" by worker {said.holder.worker}"
    raise _stale(job, f"the job is {said.holder.state}{by}, in attempt {said.holder.attempt}")


def _stale(job: Claimed, why: str) -> StaleAttempt:
    return StaleAttempt(
        f"Attempt {job.attempt} of job {job.id} cannot complete it: {why}. Nothing was written. "
        "Roll the transaction back: the job runs, or has run, elsewhere."
    )
