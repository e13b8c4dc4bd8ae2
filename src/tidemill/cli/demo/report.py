"""The end of the demonstration: its table, and the sentence that it comes down to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidemill.cli.demo.books import Totals
from tidemill.cli.demo.places import LEASE_SECONDS
from tidemill.cli.demo.run import Ran

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 10
_MEGA = 1_000_000
_GIVEN_BACK = (
    "killed worker's jobs given back after\n"
    f"(its lease of {LEASE_SECONDS:g} s counts from its last beat)"
)


def show_table(out: Console, ran: Ran) -> None:
    """Print what happened, in numbers."""
    from rich.table import Table

    table = Table(
        title="What happened", title_style="bold", title_justify="left", show_header=False
    )
    table.add_column()
    table.add_column(justify="right")
    for name, value in _rows(ran):
        table.add_row(name, value)
    out.print(table)


def faults_of(ran: Ran) -> list[str]:
    """Every reason not to believe the run, in sentences; none when the books balance."""
    faults = list(ran.audit.faults)
    faults += _recovery_faults(ran)
    if any(ran.exit_codes):
        codes = ", ".join(map(str, ran.exit_codes))
        faults.append(f"The workers were told to stop and should all exit with 0, not {codes}.")
    faults += [
        f"{path} is not what its RECORD says: it was changed after installation."
        for path in ran.audit.mismatched
    ]
    return faults


def _recovery_faults(ran: Ran) -> Iterator[str]:
    for hit in ran.hits:
        lapses = [lapse for lapse in ran.audit.lapsed if lapse.worker == hit.worker]
        if len(lapses) != hit.attempts:
            yield (
                f"Worker {hit.number} was hit with {hit.attempts} attempts running, and "
                f"{len(lapses)} of its attempts are recorded as lapsed."
            )
    if ran.recovery_seconds is not None and ran.recovery_seconds > ran.longest_recovery:
        yield (
            f"The jobs of the killed worker were given back after {ran.recovery_seconds:.1f} s; "
            f"with a lease of {LEASE_SECONDS:g} s, {ran.longest_recovery:g} s are enough."
        )


def closing(ran: Ran) -> str:
    """What a run without faults has shown."""
    totals = ran.audit.totals
    return (
        f"The books balance: {totals.jobs:,} files in the RECORDs, {totals.jobs:,} jobs,\n"
        "each with exactly one recorded success."
    )


def shown(faults: list[str]) -> list[str]:
    """The first of the faults, and how many more there are."""
    more = len(faults) - _SHOWN
    return faults[:_SHOWN] + ([f"… and {more:,} more."] if more > 0 else [])


def _rows(ran: Ran) -> list[tuple[str, str]]:
    totals = ran.audit.totals
    counts = [(name, f"{count:,}") for name, count in _counts(totals)]
    if ran.recovery_seconds is not None:
        counts.append((_GIVEN_BACK, f"{ran.recovery_seconds:.1f} s"))
    return [
        *counts,
        ("time, in all", f"{ran.seconds:.1f} s"),
        ("time, to enqueue the jobs", f"{ran.enqueue_seconds:.1f} s"),
        ("files per second", f"{totals.succeeded / ran.seconds:,.0f}"),
        ("megabytes per second", f"{totals.size / _MEGA / ran.seconds:,.1f}"),
    ]


def _counts(totals: Totals) -> list[tuple[str, int]]:
    counts = [
        ("jobs", totals.jobs),
        ("succeeded", totals.succeeded),
        ("files that differ from their RECORD", totals.mismatches),
        ("attempts", totals.attempts),
        ("attempts that lapsed with their worker", totals.lapses),
        ("bodies that began (from the journal)", totals.bodies),
        ("jobs whose body ran twice or more", totals.ran_twice),
        ("stale reports rejected", totals.stale),
    ]
    if totals.released:
        counts.insert(-3, ("attempts given back at a shutdown", totals.released))
    if totals.failed:
        counts.insert(-3, ("attempts that failed", totals.failed))
    return counts
