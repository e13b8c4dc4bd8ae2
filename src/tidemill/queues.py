"""Looking at queues and pausing them: `mill.queues.list`, `pause` and `resume`.

A pause is audited under its actor, like every operator action; `action` is its id, and repeating
one with the same id changes nothing and answers what the first one answered.
"""

from __future__ import annotations

from uuid import UUID

from tidemill.client import Client
from tidemill.operators import action_id
from tidemill.store.monitor import ListQueues
from tidemill.store.operators import PauseQueue
from tidemill.values.monitor import QueueRecord
from tidemill.values.operators import QueueResult


class Queues:
    """`mill.queues`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def sync(self) -> SyncQueues:
        """The same for threads: `mill.queues.sync.list()`."""
        return SyncQueues(self._client)

    async def list(self) -> tuple[QueueRecord, ...]:
        """The queues that are paused or hold a job that has not ended, by name."""
        return await self._client.perform(ListQueues())

    async def pause(self, queue: str, *, actor: str, action: UUID | None = None) -> QueueResult:
        """Claim nothing more from a queue. What runs goes on, and jobs may be enqueued.

        The effect is `done`, or `unchanged` if it was paused before.
        """
        return await self._client.perform(_pause(queue, actor, action))

    async def resume(self, queue: str, *, actor: str, action: UUID | None = None) -> QueueResult:
        """Claim from a queue again. The effect is `done`, or `unchanged` if it was not paused."""
        return await self._client.perform(_resume(queue, actor, action))


class SyncQueues:
    """`mill.queues.sync`: as `mill.queues`, blocking this thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> tuple[QueueRecord, ...]:
        """As `Queues.list`."""
        return self._client.perform_sync(ListQueues(), instead="await mill.queues.list()")

    def pause(self, queue: str, *, actor: str, action: UUID | None = None) -> QueueResult:
        """As `Queues.pause`."""
        request = _pause(queue, actor, action)
        return self._client.perform_sync(request, instead="await mill.queues.pause(...)")

    def resume(self, queue: str, *, actor: str, action: UUID | None = None) -> QueueResult:
        """As `Queues.resume`."""
        request = _resume(queue, actor, action)
        return self._client.perform_sync(request, instead="await mill.queues.resume(...)")


def _pause(queue: str, actor: str, action: UUID | None) -> PauseQueue:
    return PauseQueue(queue=queue, paused=True, actor=actor, action=action_id(action))


def _resume(queue: str, actor: str, action: UUID | None) -> PauseQueue:
    return PauseQueue(queue=queue, paused=False, actor=actor, action=action_id(action))
