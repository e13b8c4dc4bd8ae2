"""`tidemill demo`: the main job on real input, with real faults."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from tidemill.cli import exits

if TYPE_CHECKING:
    from tidemill.cli.demo.places import Place
    from tidemill.cli.demo.records import RecordedFile
    from tidemill.cli.demo.run import Ran

FEWEST_FILES = 5_000
_FEWEST_WORKERS = 2


@click.command(epilog=exits.HELP)
@click.option(
    "--files",
    type=click.IntRange(min=1),
    metavar="N",
    show_default=f"all of them, and at least {FEWEST_FILES:,}",
    help="Verify only N of the files, slowed down so that the faults still find work.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Worker processes to start with.",
)
@click.option("--no-faults", is_flag=True, help="Kill and pause nobody.")
@click.option(
    "--store",
    default="sqlite",
    show_default=True,
    metavar="STORE",
    help="sqlite; postgres, a server started for the run; or postgresql://user@host/database.",
)
@click.option("--keep", is_flag=True, help="Keep the database, the journal and the workers' logs.")
def demo(*, files: int | None, workers: int, no_faults: bool, store: str, keep: bool) -> None:
    """Kill workers under load, and prove that no job is lost.

    It needs an environment with at least 5,000 packaged files, or --files N.

    One job for each file that the packages installed beside Tidemill list with a hash: it verifies
    the file's SHA-256. Worker processes share one store with a lease of 3 s: an SQLite file in a
    temporary directory, or a schema of its own in PostgreSQL. At 40 % of the work one worker is
    killed, at 60 % another is paused until its lease is over, and resumed. Then the packages'
    lists, a journal kept by the handlers and the tables are held against each other. Exits with 1
    if they differ, if a file is not what its package says, or if there are fewer than 5,000 files.
    """
    if not no_faults and workers < _FEWEST_WORKERS:
        raise click.UsageError(
            "One worker is killed and another paused, so --workers must be at least 2; "
            "or give --no-faults."
        )
    chosen = _chosen(files)
    directory = Path(tempfile.mkdtemp(prefix="tidemill-demo-"))
    done = False
    try:
        with _ended_in_order(), _placed(store, directory, keep=keep) as place:
            ran = _run(
                chosen,
                directory,
                place,
                workers=workers,
                faults=not no_faults,
                slowed=files is not None,
            )
            _conclude(ran)
        done = True
    finally:
        if (done and not keep) or not any(directory.iterdir()):
            shutil.rmtree(directory)
        else:
            click.echo(f"The database, the journal and the logs are kept in {directory}")


@contextmanager
def _placed(store: str, directory: Path, *, keep: bool) -> Generator[Place]:
    """The place of the run; what it makes beside the directory goes with a run that ends well."""
    from tidemill.cli.demo.places import placed

    with placed(store, directory) as place:
        try:
            yield place
        except BaseException:
            _say_what_is_left(place)
            raise
        if keep:
            _say_what_is_left(place)
        else:
            place.remove()


def _say_what_is_left(place: Place) -> None:
    if place.left:
        click.echo(place.left)


@contextmanager
def _ended_in_order() -> Generator[None]:
    """Let SIGTERM and SIGINT unwind, so that no worker process is left behind.

    SIGINT is heard even where the parent ignores it, as a shell does for what it starts with `&`.
    """

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    wanted = {signal.SIGTERM: leave, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _chosen(wanted: int | None) -> list[RecordedFile]:
    from tidemill.cli.demo.records import installed_files

    found = installed_files()
    fewest = FEWEST_FILES if wanted is None else wanted
    if len(found) < fewest:
        raise exits.Failure(
            f"The packages installed beside Tidemill list {len(found):,} files with a hash, and "
            f"the demonstration needs {fewest:,}. Install more packages into this environment, "
            "or ask for fewer with --files N.",
        )
    step = 1 if wanted is None else len(found) // wanted
    return found[::step][:wanted]


def _run(
    files: list[RecordedFile],
    directory: Path,
    place: Place,
    *,
    workers: int,
    faults: bool,
    slowed: bool,
) -> Ran:
    from tidemill.cli.demo.run import Plan, run
    from tidemill.cli.demo.screen import screen

    size = sum(file.size for file in files) / 1_000_000
    click.echo(f"{len(files):,} files of {size:,.0f} MB are to be verified against their RECORDs.")
    plan = Plan(
        files=files,
        directory=directory,
        place=place,
        workers=workers,
        faults=faults,
        slowed=slowed and faults,
    )
    with screen(len(files)) as shown:
        return run(plan, shown)


def _conclude(ran: Ran) -> None:
    from tidemill.cli.demo import report
    from tidemill.cli.output import console

    report.show_table(console(), ran)
    faults = report.faults_of(ran)
    if faults:
        listed = "\n".join(report.shown(faults))
        raise exits.Failure(f"The books do not balance:\n{listed}")
    click.echo(report.closing(ran))
