"""What makes a worker process a supervised one: a pipe on which its supervisor gives orders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Final

from tidemill.shell.signals import Hearing, hear_supervisor

ORDERS: Final = "TIDEMILL_SUPERVISOR_ORDERS"
"""The environment variable that holds the number of the pipe's descriptor."""
NUMBER: Final = "TIDEMILL_SUPERVISOR_NUMBER"
"""The environment variable that holds the number of the worker process."""


@dataclass(frozen=True, slots=True)
class Supervised:
    """That somebody supervises this process.

    Attributes:
        number: of this worker process, from 1, for its log lines.
        hearing: how it hears that it is to end.
    """

    number: int
    hearing: Hearing


def supervised() -> Supervised | None:
    """What makes this process a supervised one; None if nobody supervises it.

    To be asked once: what this process starts is not supervised.
    """
    orders = os.environ.pop(ORDERS, None)
    number = os.environ.pop(NUMBER, None)
    if orders is None or number is None:
        return None
    os.set_inheritable(int(orders), False)
    return Supervised(int(number), partial(hear_supervisor, orders=int(orders)))
