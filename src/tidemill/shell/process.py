"""A process that is a worker and nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from functools import partial
from typing import Final

from tidemill.shell.notices import logger
from tidemill.shell.scope import Close
from tidemill.shell.signals import Hearing, hear_signals
from tidemill.shell.worker import Worker

CLOSING_SECONDS: Final = 10.0
"""How long closing may take, on top of what the end of a worker takes."""


def run_process(worker: Worker, hearing: Hearing | None = None, close: Close | None = None) -> None:
    """Run the worker on an event loop of its own until it has drained.

    A loop that is closed in order waits for every coroutine, so one handler that ignores its
    cancellation would keep the process for ever. Its job was given back to the store (clause G3),
    so the process ends with it: at once, without running exit functions.

    `hearing` says how it hears that it is to end; by default by signals, which it ignores once the
    worker has ended. `close` is called after that, whatever ended it; what it raises is logged.

    Raises:
        Exception: whatever `Worker.run` raises.
    """
    status = 1
    runner = asyncio.Runner()
    try:
        runner.run(_run(worker, hearing or partial(hear_signals, deaf_afterwards=True), close))
        status = 0
    finally:
        if worker.unfinished:
            _leave(worker.unfinished, status)
        runner.close()


async def _run(worker: Worker, hearing: Hearing, close: Close | None) -> None:
    try:
        await worker.run(hearing)
    finally:
        if close is not None:
            await _closed(close)


async def _closed(close: Close) -> None:
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            closing = close()
            if closing is not None:
                await closing
    except Exception:  # noqa: BLE001 - the jobs are done, whatever is wrong with it
        logger.exception(
            "What handlers take their services from could not be closed (it has %g s for that); "
            "the process ends without.",
            CLOSING_SECONDS,
        )


def _leave(unfinished: int, status: int) -> None:
    logger.error(
        "%d handlers ignore that they were asked to stop; they end with this process.",
        unfinished,
        exc_info=status != 0,
    )
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
