"""What `tidemill.testing` offers, and what it costs."""

import inspect
import subprocess
import sys

from tidemill import testing
from tidemill.errors import TidemillError


def test_what_it_offers_is_listed_sorted_and_documented() -> None:
    offered = [
        "Harness",
        "JobFailed",
        "JobView",
        "Manifest",
        "NobodyRuns",
        "Runaway",
        "StuckHandler",
        "SyncHarness",
    ]
    assert testing.__all__ == offered
    assert [name for name in offered if not inspect.getdoc(getattr(testing, name))] == []


def test_its_errors_belong_to_the_one_tree() -> None:
    for error in (testing.JobFailed, testing.NobodyRuns, testing.Runaway, testing.StuckHandler):
        assert issubclass(error, TidemillError)


def test_a_harness_needs_no_pytest() -> None:
    program = "import sys, tidemill.testing; print('pytest' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"
