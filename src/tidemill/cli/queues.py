"""`tidemill queues`: look at queues, pause and resume them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidemill.cli import exits
from tidemill.cli.actor import actor_option
from tidemill.cli.output import console, json_option, print_json, print_table, printable
from tidemill.cli.source import ListCommand, opened, store_options
from tidemill.values.monitor import QueueRecord
from tidemill.values.operators import Effect, QueueResult

if TYPE_CHECKING:
    from tidemill.queues import SyncQueues

F = TypeVar("F", bound=Callable[..., Any])
Act = Callable[["SyncQueues", str, str], QueueResult]


@click.group(epilog=exits.HELP)
def queues() -> None:
    """List queues, pause and resume them."""


@queues.command("list", cls=ListCommand, epilog=exits.HELP)
@store_options
@json_option
def list_queues(*, store_url: str | None, app_name: str | None, as_json: bool) -> None:
    """List the queues that are paused or have jobs to come.

    READY jobs can be claimed, HELD ones wait for a worker that knows them. With --json:
    {"queues": [{"queue", "paused", "ready", "held", "scheduled", "running"}, ...]}.
    """
    with opened(store_url, app_name) as app:
        found = app.queues.sync.list()
    if as_json:
        print_json({"queues": [_record(queue) for queue in found]})
    elif found:
        _show(found)
    else:
        click.echo("No jobs wait, and no queue is paused.", err=True)


def _queue_action(command: F) -> F:
    """Give a command the queues it acts on, the store, the actor and --json."""
    names = click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
    return names(store_options(actor_option(json_option(command))))


@queues.command(epilog=exits.HELP)
@_queue_action
def pause(**options: Any) -> None:
    """Claim nothing more from queues.

    What runs goes on, and jobs may be enqueued. A queue may be paused before it has jobs.
    """
    _act(lambda queues, name, actor: queues.pause(name, actor=actor), **options)


@queues.command(epilog=exits.HELP)
@_queue_action
def resume(**options: Any) -> None:
    """Claim from paused queues again."""
    _act(lambda queues, name, actor: queues.resume(name, actor=actor), **options)


def _act(
    act: Act,
    *,
    names: tuple[str, ...],
    store_url: str | None,
    app_name: str | None,
    actor: str,
    as_json: bool,
) -> None:
    with opened(store_url, app_name) as app:
        results = [act(app.queues.sync, name, actor) for name in dict.fromkeys(names)]
    if as_json:
        print_json({"results": [_result(result) for result in results]})
    else:
        for result in results:
            click.echo(f"{printable(result.queue)}  {_sentence(result)}")
    if any(result.effect is not Effect.DONE for result in results):
        raise SystemExit(exits.UNCHANGED)


def _sentence(result: QueueResult) -> str:
    stands = "paused" if result.paused else "open"
    if result.effect is Effect.DONE:
        return f"done: now {stands}"
    return f"unchanged: it is {stands}"


def _show(found: tuple[QueueRecord, ...]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("QUEUE", overflow="fold")
    table.add_column("", no_wrap=True)
    for name in ("READY", "HELD", "SCHEDULED", "RUNNING"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        stands = Text("paused", style="yellow") if each.paused else Text("open")
        counts = (each.ready, each.held, each.scheduled, each.running)
        table.add_row(Text(printable(each.queue)), stands, *(f"{count:,}" for count in counts))
    print_table(console(), table)


def _record(queue: QueueRecord) -> dict[str, Any]:
    return {
        "queue": queue.queue,
        "paused": queue.paused,
        "ready": queue.ready,
        "held": queue.held,
        "scheduled": queue.scheduled,
        "running": queue.running,
    }


def _result(result: QueueResult) -> dict[str, Any]:
    return {"queue": result.queue, "effect": result.effect, "paused": result.paused}
