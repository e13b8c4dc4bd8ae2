"""`tidemill jobs log`: what the handler of a job has logged."""

from __future__ import annotations

from uuid import UUID

import click

from tidemill.cli import exits
from tidemill.cli.output import console, json_option, print_json
from tidemill.cli.parameters import page_options
from tidemill.cli.source import opened, store_options
from tidemill.values.notes import LogPage


@click.command("log", epilog=exits.HELP)
@click.argument("job_id", metavar="ID", type=click.UUID)
@store_options
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the lines of this attempt.",
)
@page_options("lines", default=100)
@json_option
def show_log(
    *,
    job_id: UUID,
    store_url: str | None,
    app_name: str | None,
    attempt: int | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Show what a job's handler has logged, oldest first.

    These are the lines of ctx.log(message, name=value, ...), of the job's last 10 attempts. They
    can be read about a second after they were logged, while the attempt still runs. Instants are
    UTC. With --json: {"lines": [...], "next_cursor": ...}, where next_cursor is null on the last
    page.
    """
    with opened(store_url, app_name) as app:
        page = app.jobs.sync.log(job_id, attempt=attempt, cursor=cursor, limit=limit)
        most = app.store.bounds.page_size
    if limit > most and page.next_cursor is not None:
        click.echo(
            f"This is one page of {most:,}, the most that the store shows at once.", err=True
        )
    if as_json:
        from tidemill.cli import job_json

        lines = [job_json.line(line) for line in page.lines]
        print_json({"lines": lines, "next_cursor": page.next_cursor})
    else:
        _print_page(page, _nothing(job_id, attempt, cursor))


def _print_page(page: LogPage, nothing: str) -> None:
    from tidemill.cli import job_lines

    if page.lines:
        job_lines.show_log(console(), page.lines)
    else:
        click.echo(nothing, err=True)
    if page.next_cursor is not None:
        click.echo(f"There are more: --cursor {page.next_cursor}", err=True)


def _nothing(job_id: UUID, attempt: int | None, cursor: str | None) -> str:
    whose = f"Job {job_id}" if attempt is None else f"Attempt {attempt} of job {job_id}"
    return f"{whose} has nothing{'' if cursor is None else ' more'} in its log."
