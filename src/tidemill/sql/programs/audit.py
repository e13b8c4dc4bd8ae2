"""Audit: what operators did, and the answer a repeated action is given (clause L1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from tidemill.core.actions import require_repeat
from tidemill.sql.program import Program, Statement
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values.operators import ActionResult, QueueResult

OnJobs = tuple[ActionResult, ...]
OnQueues = tuple[QueueResult, ...]
R = TypeVar("R", OnJobs, OnQueues)

Action = Cancel | Requeue | Rerun | RunNow | PauseQueue
_ANSWERS: Final[dict[str, Any]] = {PauseQueue.kind: OnQueues}


def answer_before(action: Action, answer: type[R]) -> Program[R | None]:
    """What this very action was answered before, of the type `answer`; None if it is new.

    Raises:
        ActionIdReused: the id belongs to another action.
    """
    rows = yield Statement("past_action", {"action": action.action})
    if not rows:
        return None
    kind, told = rows[0]["kind"], rows[0]["answer"]
    done: OnJobs | OnQueues = msgspec.json.decode(told, type=_ANSWERS.get(kind, OnJobs))
    require_repeat(action.action, (action.kind, action.targets), kind, done)
    return msgspec.json.decode(told, type=answer)


def record_action(
    action: Action, now: datetime, results: Sequence[ActionResult] | Sequence[QueueResult]
) -> Program[None]:
    """Leave the audit row, in the action's own transaction."""
    yield Statement(
        "insert_action",
        {
            "action": action.action,
            "kind": action.kind,
            "actor": action.actor,
            "at": now,
            "answer": msgspec.json.encode(results).decode(),
        },
    )
