"""`tidemill worker`: claim and run jobs until told to stop."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli import exits
from tidemill.cli.parameters import to_duration, to_queues
from tidemill.cli.source import kept, load_app, load_module, store_option


@click.command(epilog=exits.HELP)
@click.argument("app_name", metavar="MODULE:ATTRIBUTE")
@store_option
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
    "--lease",
    type=to_duration,
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long the jobs of a worker that vanished stay with it. Beats go out every third.",
)
@click.option(
    "--grace",
    type=to_duration,
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long a shutdown lets handlers finish before it cancels them.",
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
@click.option("--json", "as_json", is_flag=True, help="Write the log as one JSON object per line.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least important log lines to write.",
)
def worker(
    *,
    app_name: str,
    store_url: str | None,
    modules: tuple[str, ...],
    as_json: bool,
    log_level: str,
    **settings: Any,
) -> None:
    """Run the jobs of an application, until told to stop.

    MODULE:ATTRIBUTE names the application, such as orders:mill; modules in the current directory
    can be imported. The store is the application's own, unless --store names another.

    SIGTERM or SIGINT (Ctrl-C): no more jobs are claimed, running handlers may finish within the
    grace period, and are then cancelled and their jobs given back at no cost. A second signal ends
    the wait at once. The log goes to stderr.
    """
    from tidemill.cli.log_lines import write_log
    from tidemill.shell.process import run_process

    write_log(log_level, as_json=as_json)
    app = load_app(app_name)
    for module in modules:
        load_module(module)
    if store_url is not None:
        app.configure(store_url)
    try:
        run_process(kept(app).worker(**settings))
    finally:
        app.close()
