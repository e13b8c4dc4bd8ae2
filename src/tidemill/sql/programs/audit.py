"""Audit: what operators did, and the answer a repeated action is given (clause L1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from tidemill.core.actions import require_kind
from tidemill.sql.program import Program, Statement
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values.operators import ActionResult, QueueResult

OnJobs = tuple[ActionResult, ...]
OnQueues = tuple[QueueResult, ...]
R = TypeVar("R", OnJobs, OnQueues)

Action = Cancel | Requeue | Rerun | RunNow | PauseQueue


def answer_before(action: Action, answer: type[R]) -> Program[R | None]:
    """What this very action was answered before, of the type `answer`; None if it is new.

    Raises:
        InvalidValue: the id belongs to an action of another kind.
    """
    rows = yield Statement("past_action", {"action": action.action})
    if not rows:
        return None
    require_kind(action.action, action.kind, rows[0]["kind"])
    return msgspec.json.decode(rows[0]["answer"], type=answer)


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
