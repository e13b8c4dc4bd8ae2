"""`tidemill jobs cancel|requeue|rerun|run-now`: audited changes, each with an actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from tidemill.cli import exits
from tidemill.cli.actor import actor_option
from tidemill.cli.output import json_option, print_json, printable
from tidemill.cli.source import opened, store_options
from tidemill.errors import NotFound
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.states import JobState

if TYPE_CHECKING:
    from tidemill.operators import SyncJobs

F = TypeVar("F", bound=Callable[..., Any])
Act = Callable[["SyncJobs", UUID, str], ActionResult]

_DONE = frozenset({Effect.DONE, Effect.REQUESTED})
_TAKEN_BY = {
    "cancel": "cancel takes jobs that have not ended",
    "requeue": "requeue takes dead, quarantined and cancelled jobs",
    "rerun": "rerun takes jobs that have ended",
    "run-now": "run-now takes scheduled jobs",
}
"""Which jobs an action changes, for those whose job is none of them."""


def _action(command: F) -> F:
    """Give a command the ids it acts on, the store, the actor and --json."""
    ids = click.argument("job_ids", metavar="ID...", type=click.UUID, nargs=-1, required=True)
    return ids(store_options(actor_option(json_option(command))))


@click.command(epilog=exits.HELP)
@_action
def cancel(**options: Any) -> None:
    """Cancel jobs that wait, and ask running ones to stop.

    A running job's worker hears of the request at its next poll, within about a second. A coroutine
    is cancelled; a plain function runs in a thread, which nothing can interrupt: it stops where it
    looks for the request, as with ctx.raise_if_cancelled(). A handler that finishes first still
    succeeds.
    """
    _act("cancel", lambda jobs, job_id, actor: jobs.cancel(job_id, actor=actor), **options)


@click.command(epilog=exits.HELP)
@_action
def requeue(**options: Any) -> None:
    """Make dead, quarantined or cancelled jobs ready again.

    They keep their id and their history, and get a fresh budget of attempts. A job that has
    succeeded is run again with "tidemill jobs rerun".
    """
    _act("requeue", lambda jobs, job_id, actor: jobs.requeue(job_id, actor=actor), **options)


@click.command(epilog=exits.HELP)
@_action
def rerun(**options: Any) -> None:
    """Enqueue a new job with the payload of each ended one.

    The new job is linked to the old one, which stays as it is.
    """
    _act("rerun", lambda jobs, job_id, actor: jobs.rerun(job_id, actor=actor), **options)


@click.command("run-now", epilog=exits.HELP)
@_action
def run_now(**options: Any) -> None:
    """Make scheduled jobs ready without waiting for their due time.

    That goes for jobs that wait out a backoff, too. It spends no attempt.
    """
    _act("run-now", lambda jobs, job_id, actor: jobs.run_now(job_id, actor=actor), **options)


def _act(
    verb: str,
    act: Act,
    *,
    job_ids: tuple[UUID, ...],
    store_url: str | None,
    app_name: str | None,
    actor: str,
    as_json: bool,
) -> None:
    results: list[ActionResult] = []
    with opened(store_url, app_name) as app:
        for job_id in dict.fromkeys(job_ids):
            asked = _asked_before(app.jobs.sync, job_id) if verb == "cancel" else None
            result = act(app.jobs.sync, job_id, actor)
            results.append(result)
            if not as_json:
                click.echo(f"{result.job_id}  {_sentence(verb, result, asked)}")
    if as_json:
        from tidemill.cli import job_json

        print_json({"results": [job_json.action_result(each) for each in results]})
    if any(result.effect not in _DONE for result in results):
        raise SystemExit(exits.UNCHANGED)


def _asked_before(jobs: SyncJobs, job_id: UUID) -> str | None:
    """Who has already asked for the cancellation of a job that runs."""
    try:
        return jobs.get(job_id).record.cancel_requested
    except NotFound:
        return None


def _sentence(verb: str, result: ActionResult, asked: str | None) -> str:
    state = "-" if result.state is None else result.state.value
    match result.effect:
        case Effect.DONE if result.other is not None:
            return f"done: enqueued again as {result.other}"
        case Effect.DONE:
            return f"done: now {state}"
        case Effect.REQUESTED if asked is not None:
            return f"already requested, by {printable(asked)}: it runs until its handler stops"
        case Effect.REQUESTED:
            return "requested: it runs, and its worker is told within about a second"
        case Effect.UNCHANGED if verb == "requeue" and result.state is JobState.SUCCEEDED:
            return "unchanged: it is succeeded; `tidemill jobs rerun` makes a new job of it"
        case Effect.UNCHANGED:
            return f"unchanged: it is {state}; {_TAKEN_BY[verb]}"
        case Effect.KEY_HELD:
            return f"unchanged: its idempotency key is held by {result.other}"
        case Effect.UNREADABLE:
            return (
                f"unchanged: its row cannot be read; `tidemill jobs show {result.job_id}` says "
                "what is wrong with it"
            )
        case Effect.BUSY:
            return "unchanged: another transaction holds its row; try again when that has ended"
        case Effect.NOT_FOUND:
            return "not found"
