"""The guide's examples, run in order, as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def test_every_example_of_the_guide_runs(tmp_path):
    examples = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(examples) >= 6
    (tmp_path / "guide.py").write_text("\n\n".join(examples))
    ran = subprocess.run(
        [sys.executable, "guide.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_guide_names_the_bounds_of_what_handlers_say_and_leave():
    from tidemill import Bounds

    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\d,]+) \|$", GUIDE.read_text(), re.MULTILINE)
    told = {name: int(number.replace(",", "")) for name, number in rows if hasattr(Bounds, name)}
    named = ("progress_message_bytes", "log_lines", "log_line_bytes", "attempts_kept", "children")
    assert told.keys() > set(named)
    assert told == {name: getattr(Bounds(), name) for name in told}


def test_the_guide_names_every_setting_of_a_worker():
    from tidemill.shell.settings import WorkerSettings

    named = set(re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), re.MULTILINE))
    assert set(WorkerSettings.__dataclass_fields__) <= named
