"""`tidemill doctor`: look at a store, say what is wrong, and what to do about it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tidemill.cli import exits
from tidemill.cli.output import console, json_option, print_json, print_table, printable
from tidemill.cli.source import APP_VARIABLE, app_anyhow, load_app, opened, store_option
from tidemill.errors import StoreError
from tidemill.values.doctor import Finding, Result
from tidemill.values.urls import APP_PLACE, migrating

if TYPE_CHECKING:
    from tidemill.doctor.examination import Report

_STYLES = {Result.PROBLEM: "bold red", Result.WARNING: "yellow", Result.OK: "green"}
_MOST_URGENT_FIRST = tuple(_STYLES)


@click.command(epilog=exits.HELP)
@store_option
@json_option
@app_anyhow
def doctor(*, app_name: str | None, store_url: str | None, as_json: bool) -> None:
    """Say what is wrong with a store, and what to do.

    Looks at the database, its schema, durability, clock, locks and size, at the workers, at what
    waits, runs or ended dead, and at the settings in the environment. It changes nothing, and each
    question has a time limit. With MODULE:ATTRIBUTE, such as orders:mill, the wire names of that
    application are compared with those of the jobs and the workers; its store is asked unless
    --store names another.

    Exits with 0 if there is no problem (warnings count as none), with 1 if there is one, and with
    3 if the store cannot be used. With --json:
    {"result", "findings": [{"check", "result", "found", "advice"}, ...]}.
    """
    report = _addressed(_examined(app_name, store_url), app_name, store_url)
    if as_json:
        print_json({"result": report.result, "findings": list(map(_finding, report.findings))})
    else:
        _show(report)
    if not report.usable:
        raise SystemExit(exits.STORE)
    if report.result is Result.PROBLEM:
        raise SystemExit(exits.UNCHANGED)


def _examined(app_name: str | None, store_url: str | None) -> Report:
    from tidemill.doctor.environment import judge_environment
    from tidemill.doctor.examination import Report, examine, unreachable

    declared = _declared(app_name)
    try:
        with opened(store_url, app_name) as app:
            return examine(app.store, os.environ, declared=declared)
    except StoreError as error:
        return Report((unreachable(error), *judge_environment(os.environ)), usable=False)


def _addressed(report: Report, app_name: str | None, store_url: str | None) -> Report:
    """The report with the application and the store that were named put into its advice."""
    url, name = store_url or "", app_name or os.environ.get(APP_VARIABLE) or APP_PLACE
    command = migrating(url) if url else migrating()

    def told(finding: Finding) -> Finding:
        advice = finding.advice.replace(migrating(), command).replace(APP_PLACE, name)
        return replace(finding, advice=advice)

    return replace(report, findings=tuple(map(told, report.findings)))


def _declared(app_name: str | None) -> frozenset[str] | None:
    """The wire names that an application declares, its imports included."""
    name = app_name or os.environ.get(APP_VARIABLE)
    if not name:
        return None
    app = load_app(name)
    app.load_imports()
    return app.registry.wire_names()


def _show(report: Report) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    ordered = sorted(report.findings, key=lambda finding: _MOST_URGENT_FIRST.index(finding.result))
    for finding in ordered:
        style = _STYLES[finding.result]
        table.add_row(Text(finding.result, style=style), finding.check, _sentence(finding))
    out = console()
    print_table(out, table)
    click.echo(f"\n{_total(report)}")


def _total(report: Report) -> str:
    from tidemill.doctor.words import counted

    results = Counter(finding.result for finding in report.findings)
    problems, warnings = (
        counted(results[result], result) for result in (Result.PROBLEM, Result.WARNING)
    )
    return f"{problems}, {warnings}, {results[Result.OK]} ok"


def _sentence(finding: Finding) -> Any:
    from rich.text import Text

    text = Text(printable(finding.found))
    if finding.advice:
        text.append(f"\n→ {printable(finding.advice)}", style="italic")
    return text


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "result": finding.result,
        "found": finding.found,
        "advice": finding.advice,
    }
