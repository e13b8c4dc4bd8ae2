"""`tidemill jobs cancel|requeue|rerun|run-now`: audited changes, each with an actor."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from tidemill.cli import exits
from tidemill.cli.output import json_option, print_json
from tidemill.cli.source import opened, store_options
from tidemill.values.operators import ActionResult, Effect

if TYPE_CHECKING:
    from tidemill.operators import SyncJobs

F = TypeVar("F", bound=Callable[..., Any])
Act = Callable[["SyncJobs", UUID, str], ActionResult]

_DONE = frozenset({Effect.DONE, Effect.REQUESTED})


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return f"uid {os.getuid()}"


def _action(command: F) -> F:
    """Give a command the ids it acts on, the store, the actor and --json."""
    actor = click.option(
        "--actor",
        default=_user,
        show_default="your user name",
        metavar="NAME",
        help="Who asks for it, for the audit.",
    )
    ids = click.argument("job_ids", metavar="ID...", type=click.UUID, nargs=-1, required=True)
    return ids(store_options(actor(json_option(command))))


@click.command(epilog=exits.HELP)
@_action
def cancel(**options: Any) -> None:
    """Cancel jobs that wait, and ask running ones to stop.

    A running job's worker hears of the request within a heartbeat. A handler that finishes
    first still succeeds.
    """
    _act(lambda jobs, job_id, actor: jobs.cancel(job_id, actor=actor), **options)


@click.command(epilog=exits.HELP)
@_action
def requeue(**options: Any) -> None:
    """Make dead, quarantined or cancelled jobs ready again.

    They keep their id and their history, and get a fresh budget of attempts.
    """
    _act(lambda jobs, job_id, actor: jobs.requeue(job_id, actor=actor), **options)


@click.command(epilog=exits.HELP)
@_action
def rerun(**options: Any) -> None:
    """Enqueue a new job with the payload of each ended one.

    The new job is linked to the old one, which stays as it is.
    """
    _act(lambda jobs, job_id, actor: jobs.rerun(job_id, actor=actor), **options)


@click.command("run-now", epilog=exits.HELP)
@_action
def run_now(**options: Any) -> None:
    """Make scheduled jobs ready without waiting for their due time.

    That goes for jobs that wait out a backoff, too. It spends no attempt.
    """
    _act(lambda jobs, job_id, actor: jobs.run_now(job_id, actor=actor), **options)


def _act(
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
            result = act(app.jobs.sync, job_id, actor)
            results.append(result)
            if not as_json:
                click.echo(f"{result.job_id}  {_sentence(result)}")
    if as_json:
        from tidemill.cli import job_json

        print_json({"results": [job_json.action_result(each) for each in results]})
    if any(result.effect not in _DONE for result in results):
        raise SystemExit(exits.UNCHANGED)


def _sentence(result: ActionResult) -> str:
    state = "-" if result.state is None else result.state.value
    match result.effect:
        case Effect.DONE if result.other is not None:
            return f"done: enqueued again as {result.other}"
        case Effect.DONE:
            return f"done: now {state}"
        case Effect.REQUESTED:
            return "requested: it runs, and its worker is told within a heartbeat"
        case Effect.UNCHANGED:
            return f"unchanged: it is {state}"
        case Effect.KEY_HELD:
            return f"unchanged: its idempotency key is held by {result.other}"
        case Effect.NOT_FOUND:
            return "not found"
