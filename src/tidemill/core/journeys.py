"""The exchange in flight: one at a time, each with a number."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.core.commands import DoExchange


@dataclass(slots=True)
class Journeys:
    """What travels, since when, and whether an earlier answer is missing.

    `unsure` is set after an answer that may have been lost on its way: the next exchange asks what
    runs under the worker.
    """

    sent: DoExchange | None = None
    sent_at: float = 0.0
    number: int = 0
    unsure: bool = False

    @property
    def current(self) -> int | None:
        """The number of the exchange in flight; None when there is none."""
        return self.number if self.sent is not None else None

    def begin(self, at: float, exchange: DoExchange) -> DoExchange:
        """Note that this exchange is sent now."""
        assert self.sent is None, "one exchange is in flight at a time"
        self.sent, self.sent_at = exchange, at
        self.number += 1
        return exchange

    def over(self) -> DoExchange:
        """The exchange in flight has ended; answer what it was."""
        sent = self.sent
        assert sent is not None, "an exchange ends once"
        self.sent = None
        return sent
