"""`tidemill`: the root of every command."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Any

import click

from tidemill.cli import exits
from tidemill.cli.demo.command import demo
from tidemill.cli.doctor import doctor
from tidemill.cli.jobs import jobs
from tidemill.cli.migrate import migrate
from tidemill.cli.queues import queues
from tidemill.cli.worker import worker
from tidemill.errors import TidemillError


class Root(click.Group):
    """Turns the errors that Tidemill raises on purpose into sentences."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TidemillError as error:
            if ctx.params.get("debug"):
                raise
            raise exits.failure_of(error) from error


def _show_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"tidemill {version('tidemill')}")
    ctx.exit()


@click.group(
    "tidemill",
    cls=Root,
    epilog=exits.HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--debug", is_flag=True, envvar="TIDEMILL_DEBUG", help="Show tracebacks of expected errors too."
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the installed version and exit.",
)
def cli(*, debug: bool) -> None:
    """Durable background jobs in the database your application already runs.

    Commands that read or change jobs need to know the store: name it with --store, name the
    application with --app, or set TIDEMILL_STORE or TIDEMILL_APP. "worker", "migrate" and "doctor"
    take the application without --app too. "tidemill demo" needs neither, but an environment with
    at least 5,000 packaged files, or --files N.
    """


for _command in (worker, migrate, jobs, queues, doctor, demo):
    cli.add_command(_command)


def main() -> None:
    """Run the command line and exit with its code.

    What the terminal's encoding has no letter for is printed as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="tidemill")
