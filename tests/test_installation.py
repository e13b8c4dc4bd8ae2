"""What an installation brings, what it loads, and what works without any extra.

All of it offline: the wheel is built here, and the environment it is tried in is given copies of
the distributions that it asks for, and of nothing else.
"""

import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
HEAVY = {"aiosqlite", "asyncpg", "click", "dishka", "django", "psycopg", "rich", "sqlalchemy"}
ASKED = {"click", "cronsim", "msgspec", "rich"}
BROUGHT_ALONG = {"markdown-it-py", "mdurl", "pygments"}
"""What rich needs; the others need nothing."""

APP = """
from tidemill import Tidemill

mill = Tidemill("sqlite:///orders.db")

@mill.job("orders.capture")
def capture(payment: str) -> str:
    return payment

if __name__ == "__main__":
    capture.sync.enqueue("p-1")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
         "--no-build-isolation", "--wheel-dir", folder, ROOT],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    (built,) = folder.glob("tidemill-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """An environment with the wheel and what it asks for: the folder of its programs."""
    place = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    for name in closure(ASKED):
        copy_distribution(name, python)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
         "--disable-pip-version-check", wheel],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return place / "bin"


def closure(names):
    """The distributions that these need on this host, themselves included."""
    found, new = set(), set(names)
    while new:
        found |= new
        asked = [Requirement(line) for name in new for line in distribution(name).requires or ()]
        new = {
            canonicalize_name(each.name)
            for each in asked
            if each.marker is None or each.marker.evaluate({"extra": ""})
        } - found
    return found


def copy_distribution(name, python):
    """Copy what a wheel has put into this environment into another one."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    target = Path(run(python, "-c", asked).stdout.strip())
    for file in distribution(name).files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target / file)


def run(*command, cwd=None):
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, check=False, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin"}, timeout=100,
    )  # fmt: skip


def test_importing_it_loads_nothing_heavy():
    program = "import sys, tidemill; print(*sorted(sys.modules))"
    loaded = run(sys.executable, "-X", "importtime", "-c", program)
    assert loaded.returncode == 0, loaded.stderr
    assert "tidemill.app" in loaded.stdout.split()
    imported = {line.rpartition("|")[2].strip() for line in loaded.stderr.splitlines()}
    assert "tidemill.app" in imported
    roots = {name.partition(".")[0] for name in (*loaded.stdout.split(), *imported)}
    assert roots & HEAVY == set()


def test_the_wheel_asks_for_four_distributions_and_time_zones_on_windows(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist")]
    plain = {each.name: each.marker for each in asked if "extra" not in str(each.marker)}
    assert {name for name, marker in plain.items() if marker is None} == ASKED
    assert {name: str(marker) for name, marker in plain.items() if marker is not None} == {
        "tzdata": 'sys_platform == "win32"'
    }


def test_these_bring_along_only_what_rich_needs():
    assert closure(ASKED) == ASKED | BROUGHT_ALONG


def test_the_wheel_has_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    source = ROOT / "src"
    package = [path for path in (source / "tidemill").rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(source).as_posix()
        for path in package
        if path.suffix != ".pyc" and not path.name.startswith(".")
    }
    assert "tidemill/py.typed" in wanted
    assert wanted - inside == set()


def test_without_extras_the_command_line_answers(bare):
    version = run(bare / "tidemill", "--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "tidemill"), version.stderr
    for words in (["worker", "--help"], ["doctor", "--help"], ["demo", "--help"]):
        helped = run(bare / "tidemill", *words)
        assert (helped.returncode, helped.stderr) == (0, "")


@pytest.mark.parametrize(
    "words", [["migrate"], ["jobs", "list"], ["doctor"], ["demo", "--files", "3", "--no-faults"]]
)
def test_without_the_extra_a_postgresql_url_is_refused_with_what_to_install(bare, words):
    url = "postgresql://app:s3cret@127.0.0.1:1/orders"
    refused = run(bare / "tidemill", *words, "--store", url)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert 'pip install "tidemill[postgres]"' in refused.stderr
    assert "s3cret" not in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_without_extras_jobs_run_on_sqlite(bare, tmp_path):
    (tmp_path / "orders.py").write_text(APP)
    enqueued = run(bare / "python", "orders.py", cwd=tmp_path)
    assert (enqueued.returncode, enqueued.stderr) == (0, "")
    verified = run(
        bare / "tidemill", "demo", "--files", "20", "--no-faults", "--workers", "1", cwd=tmp_path
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    looked = run(bare / "tidemill", "doctor", "orders:mill", cwd=tmp_path)
    assert looked.returncode == 1
    assert "No worker is live" in looked.stdout
