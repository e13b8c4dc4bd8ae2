"""The examples of the guide, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.bridges.kinds import KINDS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "transactions.md"
EXAMPLE = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = dict(EXAMPLE.findall(GUIDE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs(name: str, tmp_path: Path, postgres_url: str) -> None:
    for file, text in EXAMPLES.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT / "src"), "DATABASE_URL": postgres_url},
        timeout=100,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_guide_names_every_kind_that_is_taken() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    classes = {name.rpartition(".")[2] for name in KINDS} - {"PoolConnectionProxy"}
    assert {name for name in classes if f"{name}`" not in text} == set()
