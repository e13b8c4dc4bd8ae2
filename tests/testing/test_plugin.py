"""The pytest plugin, in runs of its own."""

import importlib.metadata
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ORDERS = """
from tidemill import JobContext, Tidemill

mill = Tidemill("sqlite:///never-opened.db")

@mill.job("remind")
async def remind(context: JobContext, customer: str) -> str:
    return f"{customer} {context.now():%Y-%m-%d}"

@mill.job("thumbnail")
def thumbnail(name: str) -> int:
    remind.sync.enqueue(name)
    return len(name)
"""

ASYNC_TEST = """
async def test_async(tidemill):
    from orders import remind
    ref = await remind.enqueue("c-1")
    assert await tidemill.run_until_idle() == 1
    assert await ref.result() == "c-1 2026-01-01"
    assert await tidemill.perform(remind, "c-2") == "c-2 2026-01-01"
"""

SYNC_TEST = """
import pytest
from orders import mill, remind, thumbnail

def test_sync(tidemill):
    assert mill.store is tidemill.store
    assert tidemill.sync.perform(thumbnail, "dog.png") == 7
    (job,) = tidemill.enqueued(remind, customer="dog.png")
    assert tidemill.sync.run_until_idle() == 1

@pytest.mark.tidemill(start="2030-05-06T00:00Z", concurrency=2)
def test_marked(tidemill):
    assert tidemill.sync.perform(remind, "c") == "c 2030-05-06"
"""


def run(
    folder: Path, *arguments: str, plugin: str = "anyio", **files: str
) -> subprocess.CompletedProcess[str]:
    (folder / "orders.py").write_text(ORDERS)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    other = "anyio" if plugin == "asyncio" else "asyncio"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("-o", "pythonpath=.", "--rootdir", str(folder), "-W", "error", "--strict-markers"),
        *("-p", f"no:{other}", "-p", "no:tidemill", "-p", "_tidemill_pytest"),
    ]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        timeout=100,
    )


APP = ("-o", "tidemill_app=orders:mill")


def test_the_fixture_serves_sync_tests(tmp_path: Path) -> None:
    ran = run(tmp_path, *APP, test_it=SYNC_TEST)
    assert "2 passed" in ran.stdout, ran.stdout


def test_the_fixture_serves_async_tests_under_anyio(tmp_path: Path) -> None:
    backend = """
    import pytest

    @pytest.fixture
    def anyio_backend():
        return "asyncio"
    """
    ran = run(
        tmp_path, *APP, "-o", "anyio_mode=auto", test_it=ASYNC_TEST + SYNC_TEST, conftest=backend
    )
    assert "3 passed" in ran.stdout, ran.stdout


@pytest.mark.skipif(find_spec("pytest_asyncio") is None, reason="pytest-asyncio is not installed")
def test_the_fixture_serves_async_tests_under_pytest_asyncio(tmp_path: Path) -> None:
    options = "asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function"
    settings = [each for option in options for each in ("-o", option)]
    ran = run(tmp_path, *APP, *settings, plugin="asyncio", test_it=ASYNC_TEST + SYNC_TEST)
    assert "3 passed" in ran.stdout, ran.stdout


def test_the_app_may_be_a_fixture(tmp_path: Path) -> None:
    override = """
    import pytest

    @pytest.fixture
    def tidemill_app():
        from orders import mill
        return mill
    """
    ran = run(tmp_path, test_it=SYNC_TEST, conftest=override)
    assert "2 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "Which app\\? Set `tidemill_app = orders:mill`"),
        ("nowhere:mill", "tidemill_app='nowhere:mill' cannot be found: No module named 'nowhere'"),
        ("orders:nobody", "tidemill_app='orders:nobody' cannot be found"),
        ("orders:remind", "tidemill_app='orders:remind' is <job 'remind'.*no Tidemill app"),
    ],
    ids=["none", "no module", "no attribute", "no app"],
)
def test_an_app_that_is_not_named_rightly_is_told(tmp_path: Path, name: str, said: str) -> None:
    ran = run(tmp_path, "-o", f"tidemill_app={name}", test_it="def test_it(tidemill): ...")
    assert ran.returncode, ran.stdout
    assert re.search(said, ran.stdout + ran.stderr), ran.stdout


def test_a_failed_expectation_shows_what_was_enqueued_and_none_of_the_kits_code(
    tmp_path: Path,
) -> None:
    failing = """
    from orders import remind

    def test_it(tidemill):
        remind.sync.enqueue("c-1")
        tidemill.enqueued(remind, customer="c-2")
    """
    ran = run(tmp_path, *APP, test_it=failing)
    assert "remind(customer='c-2') was not enqueued. Enqueued:" in ran.stdout
    assert "remind(customer='c-1')  [ready" in ran.stdout
    assert "testing/enqueued.py" not in ran.stdout
    assert "testing/looking.py" not in ran.stdout


def test_loading_the_plugin_loads_nothing_of_tidemill(tmp_path: Path) -> None:
    probe = """
    import sys

    def pytest_collection_finish(session):
        print("LOADED", *sorted(set(sys.modules) & {"tidemill", "msgspec", "click"}))
    """
    ran = run(tmp_path, "-s", test_it="def test_it(): ...", conftest=probe)
    assert "1 passed" in ran.stdout, ran.stdout
    assert "LOADED\n" in ran.stdout


def test_the_plugin_is_found_where_tidemill_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["entry-points"]["pytest11"]
    assert named == {"tidemill": "_tidemill_pytest"}
    (installed,) = [
        each
        for each in importlib.metadata.entry_points(group="pytest11")
        if each.name == "tidemill"
    ]
    assert installed.load().tidemill is not None
