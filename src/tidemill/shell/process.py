"""A process that is a worker and nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from functools import partial

from tidemill.shell.notices import logger
from tidemill.shell.signals import Hearing, hear_signals
from tidemill.shell.worker import Worker


def run_process(worker: Worker, hearing: Hearing | None = None) -> None:
    """Run the worker on an event loop of its own until it has drained.

    A loop that is closed in order waits for every coroutine, so one handler that ignores its
    cancellation would keep the process for ever. Its job was given back to the store (clause G3),
    so the process ends with it: at once, without running exit functions.

    `hearing` says how it hears that it is to end; by default by signals, which it ignores once the
    worker has ended.

    Raises:
        Exception: whatever `Worker.run` raises.
    """
    status = 1
    runner = asyncio.Runner()
    try:
        runner.run(worker.run(hearing or partial(hear_signals, deaf_afterwards=True)))
        status = 0
    finally:
        if worker.unfinished:
            _leave(worker.unfinished, status)
        runner.close()


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
