"""Audit: what operators did, and the answer a repeated action is given (clause L1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from tidemill.errors import InvalidValue
from tidemill.sql.program import Program, Statement
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values.operators import ActionResult

_KINDS = {Cancel: "cancel", Requeue: "requeue", Rerun: "rerun", RunNow: "run-now"}
_answers = msgspec.json.Decoder(tuple[ActionResult, ...])

Action = Cancel | Requeue | Rerun | RunNow


def answer_before(action: Action) -> Program[tuple[ActionResult, ...] | None]:
    """What this very action was answered before; None if it is new.

    Raises:
        InvalidValue: the id belongs to an action of another kind.
    """
    rows = yield Statement("past_action", {"action": action.action})
    if not rows:
        return None
    kind = rows[0]["kind"]
    if kind != _KINDS[type(action)]:
        message = (
            f"Action id {action.action} belongs to a {kind}; nothing was written. "
            "Give every action an id of its own."
        )
        raise InvalidValue(message)
    return _answers.decode(rows[0]["answer"])


def record_action(action: Action, now: datetime, results: Sequence[ActionResult]) -> Program[None]:
    """Leave the audit row, in the action's own transaction."""
    yield Statement(
        "insert_action",
        {
            "action": action.action,
            "kind": _KINDS[type(action)],
            "actor": action.actor,
            "at": now,
            "answer": msgspec.json.encode(results).decode(),
        },
    )
