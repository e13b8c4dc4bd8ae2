"""`tidemill migrate`: make the store's schema or bring it up to date."""

from __future__ import annotations

import click

from tidemill.cli import exits
from tidemill.cli.output import json_option, print_json
from tidemill.cli.source import app_anyhow, opened, store_option


@click.command(epilog=exits.HELP)
@store_option
@click.option("--plan", is_flag=True, help="Print the SQL that is missing, and change nothing.")
@json_option
@app_anyhow
def migrate(*, store_url: str | None, app_name: str | None, plan: bool, as_json: bool) -> None:
    """Make the store's schema, or bring it up to date.

    The store is that of the application MODULE:ATTRIBUTE, such as orders:mill, or --store.

    Safe to run again, and from several hosts at once: each step is applied once, under a lock of
    the database. With --json: {"applied": [name, ...]}, or {"plan": [{"name", "sql"}, ...]}.
    """
    with opened(store_url, app_name, make=True) as app:
        if plan:
            _print_plan(app.store.plan(), as_json=as_json)
        else:
            _print_applied(app.store.migrate(), as_json=as_json)


def _print_plan(steps: tuple[tuple[str, str], ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"plan": [{"name": name, "sql": sql} for name, sql in steps]})
        return
    if not steps:
        click.echo("-- Nothing to apply: the schema is up to date.")
    for name, sql in steps:
        click.echo(f"-- {name}\n{sql.strip()}\n")


def _print_applied(names: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"applied": names})
        return
    for name in names:
        click.echo(f"Applied {name}.")
    if not names:
        click.echo("Nothing to apply: the schema is up to date.")
