"""An app whose handlers run in processes; the tests and those processes both import it."""

import asyncio
import contextvars
import ctypes
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from tidemill import Discard, JobContext, Retry, RetryAfter, Snooze, Tidemill

if os.environ.get("PROCESS_APP_IS_BROKEN") == str(os.getppid()):
    message = "the application is being deployed"
    raise ImportError(message)

mill = Tidemill()
ONCE = Retry.never()
HOUR = 3600
FORGOTTEN: list[subprocess.Popen[bytes]] = []


def job(name: str, **options: object):
    return mill.job(name, executor="process", retry=ONCE, **options)


def tell(path: str, text: object) -> None:
    """Write a file in one step."""
    part = Path(f"{path}.part")
    part.write_text(str(text))
    part.replace(path)


def sleep_deaf(seconds: int) -> None:
    """Sleep without ever letting another thread of this process run."""
    ctypes.PyDLL(None).sleep(seconds)


@job("where")
def where() -> tuple[int, bool, bool]:
    main = threading.current_thread() is threading.main_thread()
    return os.getpid(), main, sys.stdin.read() == ""


@job("describe")
def describe(ctx: JobContext, word: str) -> dict[str, str]:
    ctx.add_tag("said", word)
    return {
        "attempt": str(ctx.attempt),
        "job": str(ctx.job_id),
        "tenant": str(ctx.tenant),
        "deadline": str(ctx.deadline),
        "word": word,
    }


@job("describe.async")
async def describe_async(ctx: JobContext) -> int:
    await asyncio.sleep(0)
    ctx.add_tag("said", "later")
    return os.getpid()


@job("fail")
def fail(how: str) -> None:
    wishes: dict[str, BaseException] = {
        "error": LookupError("no such order"),
        "exit": SystemExit(3),
        "discard": Discard("worthless"),
        "snooze": Snooze(timedelta(hours=1)),
        "again": RetryAfter(timedelta(hours=1)),
    }
    raise wishes[how]


@job("local.error")
def local_error() -> None:
    class Text(str):
        __slots__ = ()

    class Local(Exception):
        def __str__(self) -> str:
            return Text("cannot be sent")

    raise Local


@job("die")
def die(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)


@job("wait")
def wait(ctx: JobContext, told: str) -> str:
    tell(told, os.getpid())
    reason = ctx.sync.wait_cancelled(HOUR)
    ctx.raise_if_cancelled()
    return str(reason)


@job("finish.anyway")
def finish_anyway(ctx: JobContext, told: str) -> str:
    tell(told, os.getpid())
    return str(ctx.sync.wait_cancelled(HOUR))


@job("wait.async")
async def wait_async(told: str) -> None:
    tell(told, os.getpid())
    await asyncio.Event().wait()


@job("deaf")
def deaf(told: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    FORGOTTEN.append(child)
    tell(told, f"{os.getpid()} {child.pid}")
    sleep_deaf(HOUR)


@job("gate")
def gate(told: str, opens: str) -> int:
    tell(told, os.getpid())
    with Path(opens).open() as fifo:
        fifo.read()
    return os.getpid()


@job("log")
def log(word: str) -> None:
    logging.getLogger("orders").info("heard %s", word, extra={"order": threading.Lock()})
    logging.getLogger("orders").debug("nobody wants to know")
    print(f"printed {word}")


class TwoReasons(Exception):
    """It can be pickled, and what comes of that cannot be read: it is made of two arguments."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


@job("log.error")
def log_error() -> str:
    logging.getLogger("orders").warning("refused", extra={"why": TwoReasons("late", "dear")})
    return "done"


@job("become")
def become() -> None:
    os.execv("/bin/sleep", ["sleep", str(HOUR)])


@job("leave.group")
def leave_group(told: str) -> None:
    os.setpgid(0, os.getpgid(os.getppid()))
    tell(told, os.getpid())
    sleep_deaf(HOUR)


@job("fork")
def fork() -> int:
    os.fork()
    return os.getpid()


@job("own.processes")
def own_processes() -> tuple[int, int, int]:
    ended = []
    for kind in ("fork", "spawn"):
        with multiprocessing.get_context(kind).Pool(1) as pool:
            ended.append(pool.apply(abs, (-1,)))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.terminate()
    ended.append(child.wait())
    return ended[0], ended[1], ended[2]


if os.environ.get("PROCESS_APP_IS_NEWER") != str(os.getppid()):

    @job("old")
    def old() -> str:
        return sys.argv[0]


@job("start.worker")
async def start_worker() -> None:
    async with mill.worker():
        pass


@job("enqueue")
def enqueue() -> str:
    return str(where.sync.enqueue().id)


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


@job("variable")
def variable() -> str:
    before = VARIABLE.get()
    VARIABLE.set("set")
    return before


class Services:
    """What attempts are given: an instance of any class they ask for."""

    async def get(self, wanted: type) -> object:
        return wanted()


@asynccontextmanager
async def open_services(_context: JobContext):
    yield Services()


mill.use_scopes(open_services)


class Clerk:
    @mill.job_method("clerk.file", executor="process", retry=ONCE)
    def file(self, word: str) -> tuple[int, str]:
        return os.getpid(), f"{type(self).__name__} filed {word}"

    @mill.job_method("clerk.file.async", executor="process", retry=ONCE)
    async def file_async(self, context: JobContext) -> tuple[int, str]:
        context.add_tag("filed")
        return os.getpid(), type(self).__name__
