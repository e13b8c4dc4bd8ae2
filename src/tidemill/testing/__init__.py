"""Testing an app's jobs: run on virtual time, and held against what their stored form was.

`Harness` runs jobs in a test; the pytest plugin gives it as the fixture `tidemill`. `Manifest`
notices when stored jobs could no longer be read. The guide is docs/how-to/testing.md.
"""

from tidemill.testing.errors import JobFailed, NobodyRuns, Runaway, StuckHandler
from tidemill.testing.harness import Harness
from tidemill.testing.manifest import Manifest
from tidemill.testing.sync import SyncHarness
from tidemill.testing.view import JobView

__all__ = [
    "Harness",
    "JobFailed",
    "JobView",
    "Manifest",
    "NobodyRuns",
    "Runaway",
    "StuckHandler",
    "SyncHarness",
]
