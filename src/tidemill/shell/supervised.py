"""What makes a worker process a supervised one: a pipe on which its supervisor gives orders."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from tidemill.shell.signals import Hearing, hear_supervisor

ORDERS: Final = "TIDEMILL_SUPERVISOR_ORDERS"
"""The environment variable that holds the number of the pipe's descriptor."""


def supervised() -> Hearing | None:
    """How a supervised process hears that it is to end; None if nobody supervises it.

    To be asked once: what this process starts is not supervised.
    """
    number = os.environ.pop(ORDERS, None)
    if number is None:
        return None
    os.set_inheritable(int(number), False)
    return partial(hear_supervisor, orders=int(number))
