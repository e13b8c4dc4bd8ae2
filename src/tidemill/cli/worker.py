"""`tidemill worker`: claim and run jobs until told to stop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from tidemill.cli import exits
from tidemill.cli.parameters import to_duration, to_queues
from tidemill.cli.source import (
    APP_VARIABLE,
    app_anyhow,
    kept,
    load_app,
    load_module,
    naming,
    refuse_missing,
)
from tidemill.config import STORE_VARIABLE

if TYPE_CHECKING:
    from tidemill.app import Tidemill
    from tidemill.shell.signals import Hearing

F = TypeVar("F", bound=Callable[..., Any])


def _duration(name: str, default: str, says: str) -> Callable[[F], F]:
    """An option for a duration with its unit."""
    return click.option(
        name, type=to_duration, default=default, show_default=True, metavar="DURATION", help=says
    )


@click.command(epilog=exits.HELP)
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Use this store instead of the application's own; a database file has to be there. "
    f"{STORE_VARIABLE} counts only if the application names no store.",
)
@click.option(
    "--queues",
    type=to_queues,
    default="default",
    show_default=True,
    metavar="NAMES",
    help="Queues to serve: payments,default in strict order, or payments=3,default=1 by weight.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="The most attempts that run at once.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run N such workers, each in a process of its own, and start those that fall again.",
)
@_duration(
    "--lease", "60s", "How long the jobs of a worker that vanished stay with it; at least 1s."
)
@_duration("--poll-interval", "1s", "The longest wait between polls of an idle worker.")
@_duration(
    "--maintenance-interval", "1s", "How long after one round of upkeep the next one starts."
)
@_duration("--grace", "30s", "How long a shutdown lets handlers finish before it cancels them.")
@_duration(
    "--patience", "5s", "How long a cancelled handler may take before its job is given back."
)
@_duration(
    "--kill-after",
    "5s",
    "How long a handler in a process may take to end after it was asked to stop, before the "
    "process is killed.",
)
@_duration(
    "--delivery-timeout", "10s", "How long a call to the store may take before it is given up."
)
@_duration(
    "--stall-limit",
    "5m",
    "An event loop that has not turned for so long is left to lapse; at least the lease.",
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import this module too, for the jobs it declares. May be given more than once.",
)
@click.option(
    "--quarantine-unknown",
    is_flag=True,
    help="Claim jobs of unknown wire names and quarantine them; otherwise they are left to workers "
    "that know them.",
)
@click.option(
    "--keep-tracebacks/--no-tracebacks",
    default=True,
    show_default=True,
    help="Store the traceback of a failed attempt, or only its error.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the log as one JSON object per line.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least important log lines to write. With debug, other libraries still begin at info.",
)
@app_anyhow
def worker(
    *,
    app_name: str | None,
    store_url: str | None,
    modules: tuple[str, ...],
    processes: int,
    as_json: bool,
    log_level: str,
    **settings: Any,
) -> None:
    """Run the jobs of an application, until told to stop.

    MODULE:ATTRIBUTE names the application, such as orders:mill; modules in the current directory
    can be imported. The store is the application's own, unless --store names another: that one
    is not made if it is missing, since nobody would enqueue into a mistyped file.
    "tidemill migrate" makes it.

    SIGTERM, SIGINT (Ctrl-C) or SIGHUP: no more jobs are claimed, running handlers may finish
    within the grace period, and are then cancelled and their jobs given back at no cost. A second
    signal ends the wait at once. The log goes to stderr.
    """
    from tidemill.cli.log_lines import write_log
    from tidemill.shell.signals import ended_early
    from tidemill.shell.supervised import supervised

    place = supervised()
    write_log(log_level, as_json=as_json, process=None if place is None else place.number)
    name = app_name or os.environ.get(APP_VARIABLE)
    if not name:
        raise click.UsageError(
            f"No application is named. Write `tidemill worker MODULE:ATTRIBUTE`, or set "
            f"{APP_VARIABLE}."
        )
    with ended_early() as unless_told:
        if processes > 1 and place is None:
            _supervise(processes)
        app = _loaded(name, modules, store_url)
        unless_told()
        with naming(name):
            _work(app, settings, None if place is None else place.hearing)


def _loaded(name: str, modules: tuple[str, ...], store_url: str | None) -> Tidemill:
    app = load_app(name)
    for module in modules:
        load_module(module)
    if store_url is not None:
        app.configure(store_url)
        refuse_missing(store_url)
    return app


def _work(app: Tidemill, settings: dict[str, Any], hearing: Hearing | None) -> None:
    from tidemill.shell.process import run_process

    try:
        made = kept(app).worker(**settings)
        run_process(made, hearing, close=None if app.scopes is None else app.scopes.close)
    finally:
        app.close()


def _supervise(processes: int) -> NoReturn:
    """Run this very command in several processes, each of which finds that it is supervised."""
    from tidemill.shell.interpreter import interpreter
    from tidemill.shell.supervisor import Supervisor

    command = [*interpreter(), "-m", "tidemill", *sys.argv[1:]]
    sys.exit(Supervisor(command, processes).run())
