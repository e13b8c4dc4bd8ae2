"""The end of the demonstration: what counts as a fault besides the books themselves."""

import io
from datetime import UTC, datetime
from uuid import UUID

import pytest
from rich.console import Console

from tidemill.cli.demo.books import Audit, End, Totals
from tidemill.cli.demo.faults import Hit
from tidemill.cli.demo.report import faults_of, show_table, shown
from tidemill.cli.demo.run import Ran
from tidemill.values.ids import WorkerId

AT = datetime(2026, 3, 1, tzinfo=UTC)
WORKER = WorkerId(UUID(int=9))
LAPSE = End(attempt=1, worker=WORKER, verdict="lapsed", stale=False, ended_at=AT)


def run(**changes):
    return Ran(**{
        "audit": Audit(Totals(jobs=6_000, succeeded=6_000, size=12_000_000), lapsed=[LAPSE]),
        "seconds": 4.0, "enqueue_seconds": 0.5, "exit_codes": [0, 0],
        "hits": [Hit(1, WORKER, AT, attempts=1)], "recovery_seconds": 2.5,
        "longest_recovery": 9.0, **changes,
    })  # fmt: skip


def test_a_good_run_has_no_faults():
    assert faults_of(run()) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"exit_codes": [0, -9]}, "exit with 0, not 0, -9"),
        ({"recovery_seconds": 9.5}, "given back after 9.5 s"),
        ({"hits": [Hit(1, WORKER, AT, attempts=2)]}, "with 2 attempts running, and 1 of its"),
        ({"audit": Audit(mismatched=["a.py"]), "hits": []}, "a.py is not what its RECORD says"),
        ({"audit": Audit(faults=["Job 1 is lost."]), "hits": []}, "Job 1 is lost."),
    ],
)
def test_each_fault_is_told(changes, says):
    (fault,) = faults_of(run(**changes))
    assert says in fault


def test_a_long_list_of_faults_is_cut_with_their_number():
    assert shown([str(number) for number in range(1_012)])[-2:] == ["9", "… and 1,002 more."]


@pytest.mark.parametrize("failed", [0, 3])
def test_the_table_fits_80_columns_and_shows_what_is_out_of_the_ordinary(failed):
    ran = run()
    ran.audit.totals.failed = failed
    out = io.StringIO()
    show_table(Console(file=out, width=80), ran)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "1,500" in text
    assert "3.0" in text
    assert ("attempts that failed" in text) is bool(failed)
