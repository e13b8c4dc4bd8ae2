"""`tidemill jobs`: look at jobs and act on them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

import click

from tidemill.cli import exits
from tidemill.cli.job_actions import cancel, requeue, rerun, run_now
from tidemill.cli.job_log import show_log
from tidemill.cli.output import console, json_option, print_json
from tidemill.cli.parameters import page_options, to_states
from tidemill.cli.source import ListCommand, opened, store_options
from tidemill.values.monitor import JobPage
from tidemill.values.states import JobState


@click.group(epilog=exits.HELP)
def jobs() -> None:
    """List jobs, look at one, and cancel, requeue, rerun or start them."""


@jobs.command("list", cls=ListCommand, epilog=exits.HELP)
@store_options
@click.option(
    "--state",
    "states",
    multiple=True,
    type=to_states,
    metavar="STATES",
    help=f"Only jobs in these states, with commas between: {', '.join(JobState)}.",
)
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option(
    "--wire-name", metavar="NAME", help="Only jobs of this wire name, such as orders.capture."
)
@page_options("jobs", default=50)
@json_option
def list_jobs(
    *,
    store_url: str | None,
    app_name: str | None,
    states: tuple[tuple[JobState, ...], ...],
    queue: str | None,
    wire_name: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first.

    Instants are UTC. A terminal of less than 140 columns shows one of them, by the state: when the
    job ended, was started, or else when it is due. ATTEMPT is the number of the latest attempt.
    With --json: {"jobs": [...], "next_cursor": ...}, where next_cursor is null on the last page.
    """
    with opened(store_url, app_name) as app:
        page = app.jobs.sync.list(
            states=chain.from_iterable(states),
            queue=queue,
            wire_name=wire_name,
            cursor=cursor,
            limit=limit,
        )
        most = app.store.bounds.page_size
    if limit > most and page.next_cursor is not None:
        click.echo(
            f"This is one page of {most:,}, the most that the store shows at once.", err=True
        )
    if as_json:
        from tidemill.cli import job_json

        shown = [job_json.record(job) for job in page.jobs]
        print_json({"jobs": shown, "next_cursor": page.next_cursor})
    else:
        _print_page(page)


def _print_page(page: JobPage) -> None:
    from tidemill.cli.job_text import show_list

    if page.jobs:
        show_list(console(), page.jobs)
    else:
        click.echo("No jobs match.", err=True)
    if page.next_cursor is not None:
        click.echo(f"There are more: --cursor {page.next_cursor}", err=True)


@jobs.command("show", epilog=exits.HELP)
@click.argument("job_id", metavar="ID", type=click.UUID)
@store_options
@click.option("--traceback", is_flag=True, help="Show the tracebacks of failed attempts too.")
@json_option
def show_job(
    *, job_id: UUID, store_url: str | None, app_name: str | None, traceback: bool, as_json: bool
) -> None:
    """Show one job, its attempts, rejected reports and log.

    Attempts are kept for every end that is not a success, with the worker and the error.
    Reports that were rejected as stale are shown with both sides: the worker and attempt that
    reported, and those that held the job then. Of the log the last lines are shown; all of it is
    read with "tidemill jobs log".
    """
    with opened(store_url, app_name) as app:
        job = app.jobs.sync.get(job_id)
        shown = app.store.bounds.log_lines_shown
    if as_json:
        from tidemill.cli import job_json

        print_json(job_json.details(job))
    else:
        from tidemill.cli import job_text

        whole = len(job.log) < shown
        now = datetime.now(UTC)
        job_text.show_job(console(), job, traceback=traceback, now=now, whole_log=whole)


for _command in (show_log, cancel, requeue, rerun, run_now):
    jobs.add_command(_command)
