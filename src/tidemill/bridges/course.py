"""What goes around a program in a transaction of the user's: bounds, and undoing what failed.

On PostgreSQL an error of the database fails the whole transaction, so nothing half done can be
committed. What fails without one (a refusal, a caller that was cancelled, a time-out of the driver)
is undone here. SQLite keeps what succeeded before an error, so there it is always undone here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from tidemill.core.admission import admit
from tidemill.drivers.footing import Footing
from tidemill.drivers.run_inside import SAVEPOINT, Act, Course, Say, StepFailed
from tidemill.errors import TransactionRefused
from tidemill.sql.program import Program, Statement, each
from tidemill.sql.programs.registry import program_for, quick_for
from tidemill.store.complete import Complete
from tidemill.store.contract import Operation
from tidemill.store.enqueue import Enqueue

R = TypeVar("R")

_MILLISECOND: Final = timedelta(milliseconds=1)
_RELEASE: Final = Say("RELEASE SAVEPOINT tidemill")
_UNDO: Final = (Say("ROLLBACK TO SAVEPOINT tidemill"), _RELEASE)
_UNDO_UNLESS_FAILED: Final = (Say("SAVEPOINT tidemill_alive"), *_UNDO)
"""A transaction that has failed refuses the first, and so stays failed: to roll back to a savepoint
would have it go on."""


def course_of(operation: Operation[R], footing: Footing, wait: timedelta) -> Course[R]:
    """What performs an operation in the user's transaction.

    Raises:
        Refused: the store cannot hold what it asks for.
    """
    _refuse_at_sight(operation, footing)
    if footing.database == "SQLite":
        return on_sqlite(program_for(operation, footing.env), footing, wait)
    return _on_postgres(operation, footing, wait)


def on_sqlite(program: Program[R], footing: Footing, wait: timedelta) -> Course[R]:
    """A program on SQLite, under the write lock from its first read on.

    Raises:
        TransactionRefused: the transaction is in another file than the store's.
        LockNotGranted: another connection wrote for as long as may be waited.
    """
    rows = yield Statement("joined_file")
    _require_file(rows[0]["file"] if rows else "", footing.file)
    yield from _take_write_lock(_milliseconds(wait))
    return (yield from _undoable(program, after_failed_step=_UNDO))


def on_postgres(
    program: Program[R], wait: timedelta | None, *, writes_once: bool = False
) -> Course[R]:
    """A program on PostgreSQL, none of whose statements waits longer than `wait` for a lock.

    None leaves the user's own bound, for what never waits. What writes with one statement alone
    needs no savepoint: it has written all or nothing.
    """
    course = program if wait is None else _bounded(program, _milliseconds(wait))
    return course if writes_once else _undoable(course, after_failed_step=_UNDO_UNLESS_FAILED)


def _on_postgres(operation: Operation[R], footing: Footing, wait: timedelta) -> Course[R]:
    quick = quick_for(operation, footing.env)
    answer = None if quick is None else (yield from quick)
    if answer is None:
        program = program_for(operation, footing.env)
        bound = wait if _may_wait(operation) else None
        answer = yield from on_postgres(program, bound, writes_once=_writes_once(operation))
    yield from each(footing.riding(operation, answer))
    return answer


def _may_wait(operation: Operation[object]) -> bool:
    """Whether another transaction can hold what it writes: new ids are nobody's, keys may be."""
    if isinstance(operation, Enqueue):
        return any(job.idempotency_key is not None for job in operation.jobs)
    return True


def _writes_once(operation: Operation[object]) -> bool:
    if isinstance(operation, Enqueue):
        return len(operation.jobs) == 1 and not operation.jobs[0].tags
    return isinstance(operation, Complete)


def _refuse_at_sight(operation: Operation[object], footing: Footing) -> None:
    """Before there is a savepoint to go back to, although the program refuses the same.

    To go back would undo what other tasks of the application have said on the connection since.
    """
    if isinstance(operation, Enqueue):
        for job in operation.jobs:
            admit(job, footing.env.bounds)


def _undoable(course: Course[R], *, after_failed_step: Sequence[Act]) -> Course[R]:
    yield SAVEPOINT
    try:
        answer = yield from course
    except StepFailed:
        yield from _trying(*after_failed_step)
        raise
    except GeneratorExit:
        raise
    except BaseException:
        yield from _trying(*_UNDO)
        raise
    yield _RELEASE
    return answer


def _bounded(course: Course[R], milliseconds: int) -> Course[R]:
    rows = yield Statement("bound_lock_wait", {"bound": f"{milliseconds}ms"})
    changed = rows[0]["bounded"] is not None
    restore = [Statement("restore_lock_wait", {"setting": rows[0]["setting"]})] if changed else []
    try:
        answer = yield from course
    except GeneratorExit:
        raise
    except BaseException:
        yield from _trying(*restore)
        raise
    yield from each(restore)
    return answer


def _trying(*acts: Act) -> Course[None]:
    """What cannot be undone has ended with its transaction."""
    with suppress(StepFailed):
        yield from each(acts)


def _take_write_lock(milliseconds: int) -> Course[None]:
    """Waits no longer than that, nor longer than the user's connection would wait."""
    rows = yield Statement("busy_timeout")
    users: int = rows[0]["timeout"]
    if users <= milliseconds:
        yield Statement("take_write_lock")
        return
    yield Say(f"PRAGMA busy_timeout = {milliseconds}")
    try:
        yield Statement("take_write_lock")
    finally:
        yield Say(f"PRAGMA busy_timeout = {users}")


def _milliseconds(wait: timedelta) -> int:
    return max(wait // _MILLISECOND, 1)


def _require_file(file: str, stores: Path | None) -> None:
    if stores is None or (file and stores.exists() and stores.samefile(file)):
        return
    where = file or "memory"
    message = (
        f"This transaction is in {where}, and the store is in {stores}; a job can only be written "
        "where the store is. Open the connection to the store's file, or give the app this one."
    )
    raise TransactionRefused(message)
