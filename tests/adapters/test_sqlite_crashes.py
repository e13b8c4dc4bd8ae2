"""A crash between any two steps of any program leaves nothing half-written (clause D3).

A wrapper around the executor fails at the n-th step, for every n of every operation of a story.
After each crash the tables say what they said after one of the operation's commits, and doing the
operation again ends where it would have ended without a crash. A database that is busy at any of
these steps is met with the patience of the adapter: nothing is done twice, and no caller is told
that nothing was committed when something was.
"""

import itertools
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.adapters.conftest import LEASE

from tidemill.adapters.sqlite_channel import BUSY
from tidemill.adapters.sqlite_files import Settings, connect
from tidemill.drivers.run import run
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.errors import StoreUnavailable
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrate
from tidemill.sql.programs.env import Env
from tidemill.sql.programs.registry import WRITES, program_for
from tidemill.store.complete import Complete
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.notes import TakeNotes
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag
from tidemill.values.workers import WorkerInfo

SECOND = timedelta(seconds=1)
CATALOGUE = Catalogue(SqliteDialect())
ENV = Env(CATALOGUE.dialect, DEFAULT_BOUNDS)


class Crash(BaseException):
    """The process died here."""


class Crashing:
    """An executor that dies at its n-th step or commit: before it, or after it."""

    def __init__(self, inner, at, *, after=False, error=Crash, times=1):
        self.inner, self.after, self.count = inner, after, 0
        self.error, self.fatal = error, range(at, at + times)
        self.commits = []

    @property
    def in_transaction(self):
        return self.inner.in_transaction

    def begin(self, *, write):
        self.inner.begin(write=write)

    def step(self, step):
        return self._do(lambda: self.inner.step(step))

    def commit(self):
        def commit():
            self.inner.commit()
            self.commits.append(dump(self.inner._connection))

        self._do(commit)

    def rollback(self):
        self.inner.rollback()

    def _do(self, action):
        self.count += 1
        if self.count in self.fatal and not self.after:
            raise self.error
        answer = action()
        if self.count in self.fatal:
            raise self.error
        return answer


def dump(connection):
    """Every row of every table."""
    return [line for line in connection.iterdump() if line.startswith("INSERT")]


def ident(n):
    return uuid7(n, n * 7919)


def ends(job, attempt, verdict=Verdict.SUCCEEDED, **more):
    return Outcome(job_id=ident(job), attempt=attempt, verdict=verdict, **more)


# A record of an attempt without its place in the table: what counts, and what came too late.
ATTEMPT = re.compile(r"INSERT INTO .tidemill_attempts. VALUES\(\d+")
STALE = re.compile(r"attempt,X'\w+',\d+,X'\w+',\d+,1,")

ONE, TWO = ident(901), ident(902)
CLAIM = ClaimRequest(
    shares=(Share("default", 2), Share("mail", 1)), limit=12, wire_names=frozenset({"t.job"})
)


def info(worker):
    names = frozenset({"t.job", "t.strange"} if worker == TWO else {"t.job"})
    return WorkerInfo(
        id=worker,
        host="h",
        pid=1,
        version="0",
        queues=("default", "mail"),
        wire_names=names,
        slots=9,
    )


def jobs():
    plain = [NewJob(id=ident(n), wire_name="t.job") for n in range(1, 6)]
    return (
        *plain,
        NewJob(id=ident(6), wire_name="t.job", queue="mail", tags=frozenset({Tag("a"), Tag("b")})),
        NewJob(id=ident(7), wire_name="t.strange", idempotency_key="k"),
        NewJob(id=ident(8), wire_name="t.job", delay=SECOND, retry=Retry.never()),
        NewJob(id=ident(9), wire_name="t.job", expires=SECOND),
        NewJob(id=ident(10), wire_name="t.job", delay=LEASE * 9, expires=LEASE * 2),
        NewJob(id=ident(11), wire_name="t.job", delay=LEASE * 9),
    )


NOTED_AT = VirtualClock()()


def child(n, key=None):
    return NewJob(id=ident(n), wire_name="t.job", delay=LEASE * 9, idempotency_key=key)


def line(n):
    return LogLine(n, NOTED_AT, f"line {n}", '{"n":1}')


HALF = Progress(0.5, "half", NOTED_AT)
NOTES = (
    Note(job_id=ident(1), attempt=1, progress=HALF, lines=(line(1), line(2))),
    Note(job_id=ident(2), attempt=7, progress=HALF, lines=(line(1),)),
    Note(job_id=ident(4), attempt=1, lines=(line(1),)),
)

REPORTS = (
    ends(1, 1, lines=(line(2), line(3)), children=(child(21), child(22, "c"))),
    ends(2, 1),
    ends(3, 1, output=b"3", tags=frozenset({Tag("done")})),
    ends(
        4, 1, Verdict.FAILED, error=ErrorInfo("E", "no", "trace"), progress=HALF, lines=(line(2),)
    ),
    ends(5, 7, lines=(line(1),), children=(child(23),)),
    ends(99, 1),
    ends(6, 1, Verdict.SNOOZED, delay=SECOND),
    ends(8, 1, Verdict.DISCARDED),
)

LEFT = {"tags": frozenset({Tag("late")}), "children": (child(24),)}
LEFT_KEYED = {"tags": LEFT["tags"], "children": (child(25), child(26, "d"))}

ONLY_STALE = Exchange(worker=ONE, outcomes=(ends(5, 1),))

# Each operation of the story, and how far time moves before it.
STORY = [
    (timedelta(0), Enqueue(jobs())),
    (timedelta(0), Register(info=info(ONE), lease=LEASE)),
    (SECOND, Exchange(worker=ONE, claim=CLAIM)),
    (SECOND, TakeNotes(worker=ONE, notes=NOTES)),
    (SECOND, Exchange(worker=ONE, outcomes=REPORTS, claim=CLAIM, list_running=True)),
    (SECOND, Beat(worker=ONE, lease=LEASE)),
    (SECOND, Cancel(job_ids=tuple(map(ident, (5, 11, 1, 99))), actor="a", action=ident(801))),
    (SECOND, Requeue(job_ids=(ident(8), ident(11), ident(1)), actor="a", action=ident(802))),
    (SECOND, Rerun(job_id=ident(1), new_id=ident(12), actor="a", action=ident(803))),
    (SECOND, RunNow(job_ids=(ident(4), ident(10)), actor="a", action=ident(804))),
    (SECOND, PauseQueue(queue="mail", paused=True, actor="a", action=ident(805))),
    (SECOND, Exchange(worker=ONE, claim=CLAIM)),
    (SECOND, Complete(job_id=ident(4), attempt=2, worker=ONE, output=b"4", **LEFT)),
    (SECOND, Complete(job_id=ident(10), attempt=1, worker=ONE, **LEFT_KEYED)),
    (SECOND, Exchange(worker=ONE, outcomes=(ends(4, 2, Verdict.FAILED, in_transaction=True),))),
    (LEASE * 3, Register(info=info(TWO), lease=LEASE)),
    (timedelta(0), Maintain(lease=LEASE)),
    (SECOND, ONLY_STALE),
    (SECOND, Deregister(TWO)),
]  # fmt: skip


@pytest.fixture
def clock():
    return VirtualClock()


def executor(connection, clock):
    return SqliteExecutor(connection, CATALOGUE, clock)


def perform(operation, on):
    """As the adapter does it, without its pauses."""
    again = replace(BUSY, longest=0.0).patiently
    return again(lambda: run(program_for(operation, ENV), on, write=True, patiently=again))


def copied(connection, path):
    copy = connect(Settings(path, "NORMAL", SECOND))
    connection.backup(copy)
    return copy


def same(said, again):
    """Whether a repetition answered as documented: the same, or that it was applied already."""
    if hasattr(said, "reported"):
        for one, two in zip(said.reported, again.reported, strict=True):
            repeated = one.answer is Answer.APPLIED and two.answer is Answer.ALREADY_APPLIED
            if not (repeated or one.answer is two.answer):
                return False
        return True
    if isinstance(said, tuple):
        return [replace(each, **_once(each)) for each in said] == [
            replace(each, **_once(each)) for each in again
        ]
    return True


def _once(answer):
    return {"repeated": False} if hasattr(answer, "repeated") else {}


def test_the_story_performs_every_operation_that_writes():
    assert {type(operation) for _wait, operation in STORY} == set(WRITES)


@pytest.mark.parametrize("after", [False, True], ids=["before-a-step", "after-a-step"])
def test_a_crash_at_any_step_leaves_a_commit_or_nothing(tmp_path, clock, after):
    connection = connect(Settings(tmp_path / "story.db", "NORMAL", SECOND))
    run(migrate("sqlite"), executor(connection, clock), write=True)
    crashes = 0
    names = (tmp_path / f"{n}.db" for n in itertools.count())
    for wait, operation in STORY:
        clock.advance(wait)
        before = dump(connection)
        clean = copied(connection, next(names))
        whole = Crashing(executor(clean, clock), 0, after=after)
        said = perform(operation, whole)
        final = dump(clean)
        assert settled(final) != settled(before) or operation is ONLY_STALE, (
            f"{operation} wrote nothing: it proves nothing"
        )
        clean.close()
        for at in range(1, whole.count + 1):
            copy = copied(connection, next(names))
            dying = Crashing(executor(copy, clock), at, after=after)
            with pytest.raises(Crash):
                perform(operation, dying)
            left = dump(copy)
            assert left in [before, *whole.commits]
            assert left == [before, *dying.commits][-1]
            again = perform(operation, executor(copy, clock))
            assert same(said, again), f"{type(operation).__name__} crashed at {at}: {again}"
            ended = dump(copy)
            assert settled(ended) == settled(final), f"{type(operation).__name__} at {at}"
            copy.close()
            crashes += 1
        perform(operation, executor(connection, clock))
    connection.close()
    assert crashes > 60


@pytest.mark.parametrize("times", [1, 2, 50], ids=lambda times: f"{times}-times")
def test_a_database_that_is_busy_at_any_step_has_nothing_done_twice_and_no_answer_lost(
    tmp_path, clock, times
):
    connection = connect(Settings(tmp_path / "story.db", "NORMAL", SECOND))
    run(migrate("sqlite"), executor(connection, clock), write=True)
    names = (tmp_path / f"{n}.db" for n in itertools.count())
    told = {"whole": 0, "nothing": 0}
    for wait, operation in STORY:
        clock.advance(wait)
        before = dump(connection)
        clean = copied(connection, next(names))
        whole = Crashing(executor(clean, clock), 0, times=0)
        said = perform(operation, whole)
        final = dump(clean)
        clean.close()
        for at in range(1, whole.count + 1):
            copy = copied(connection, next(names))
            busy = Crashing(executor(copy, clock), at, error=StoreUnavailable, times=times)
            try:
                answer = perform(operation, busy)
            except StoreUnavailable:
                assert dump(copy) == before, f"{operation} at {at}: it said that nothing was done"
                told["nothing"] += 1
            else:
                if put_off(answer) or marks(busy.commits[-1]) > marks(whole.commits[-1]):
                    answer = perform(operation, executor(copy, clock))
                    assert same(said, answer)
                else:
                    assert first_answer(answer) == first_answer(said)
                    assert settled(busy.commits[0]) == settled(whole.commits[0])
                assert times > 1 or settled(dump(copy)) == settled(final)
                told["whole"] += 1
            copy.close()
        perform(operation, executor(connection, clock))
    connection.close()
    assert told["whole"] > 10
    assert (told["nothing"] > 0) is (times > 1)


def put_off(answer):
    """Whether the end of an attempt that leaves a keyed job is for the next time."""
    return any(each.answer is Answer.BUSY for each in getattr(answer, "reported", ()))


def marks(lines):
    """How many completions that left jobs are not settled yet."""
    return sum('"children"' in line for line in lines)


def first_answer(answer):
    """An answer without what its follow-ups add to it."""
    return replace(answer, expired=0, unheld=0, settled=0) if hasattr(answer, "unheld") else answer


def settled(lines):
    """The rows but for stale records, which may be lost or doubled with the process."""
    counted = [ATTEMPT.sub("attempt", line) for line in lines]
    return [line for line in counted if not STALE.match(line)]


@pytest.mark.parametrize("after", [False, True], ids=["before-a-step", "after-a-step"])
def test_a_migration_that_dies_at_any_step_is_run_again(tmp_path, clock, after):
    for at in itertools.count(1):
        connection = connect(Settings(tmp_path / f"{at}.db", "NORMAL", SECOND))
        dying = Crashing(executor(connection, clock), at, after=after)
        try:
            run(migrate("sqlite"), dying, write=True)
        except Crash:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            assert bool(tables) == bool(dying.commits)
            run(migrate("sqlite"), executor(connection, clock), write=True)
        else:
            connection.close()
            break
        names = connection.execute("SELECT count(*) FROM tidemill_jobs").fetchone()[0]
        assert names == 0
        connection.close()
    assert at > 10
