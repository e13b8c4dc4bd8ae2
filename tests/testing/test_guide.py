"""The examples of the guide, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "testing.md"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYIO = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def files() -> dict[str, str]:
    return dict(BLOCK.findall(GUIDE.read_text(encoding="utf-8")))


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    plugins = ["-p", "no:asyncio", "-p", "no:tidemill", "-p", "_tidemill_pytest"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{folder}"},
        timeout=100,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(ANYIO)
    return tmp_path


def test_every_example_runs(folder: Path) -> None:
    tests = sum(text.count("def test_") for text in files().values())
    first = pytest_in(folder)
    assert "jobs.json was written" in first.stdout, first.stdout
    assert f"1 failed, {tests - 1} passed" in first.stdout, first.stdout
    second = pytest_in(folder)
    assert f"{tests} passed" in second.stdout, second.stdout
    assert not (folder / "orders.db").exists()


def test_the_guide_names_every_verb() -> None:
    from tidemill.testing import Harness

    text = GUIDE.read_text(encoding="utf-8")
    verbs = {name for name, value in vars(Harness).items() if callable(value) and name[0] != "_"}
    assert {verb for verb in verbs if f"`{verb}(" not in text} == set()
