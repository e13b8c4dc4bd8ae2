"""What a handler may raise to say what is to become of its job (clause E3).

They are no errors of Tidemill's, so they stand outside its error tree: `except TidemillError`
around a call in a handler does not swallow them.
"""

from __future__ import annotations

from datetime import timedelta

from tidemill.values.durations import Duration, duration

_NO_TIME = timedelta(0)


class Wish(Exception):
    """Base of what a handler may raise to end its attempt on purpose."""


class RetryAfter(Wish):
    """This attempt failed; try again after `delay` instead of the policy's backoff.

    It counts as a failure. A negative delay counts as none. `reason` is kept with the
    attempt.
    """

    def __init__(self, delay: Duration, reason: str = "") -> None:
        """Ask for a wait of `delay`, a timedelta or text such as `"30s"`."""
        self.delay = max(duration(delay, "RetryAfter delay"), _NO_TIME)
        self.reason = reason
        super().__init__(reason or f"asked to be tried again after {self.delay}")


class Snooze(Wish):
    """Not yet: run this job again after `delay`, at no cost to its budget."""

    def __init__(self, delay: Duration) -> None:
        """Ask for a wait of `delay`, a timedelta or text such as `"30s"`; negative is none."""
        self.delay = max(duration(delay, "Snooze delay"), _NO_TIME)
        super().__init__(f"snoozed for {self.delay}")


class Discard(Wish):
    """No attempt can help: the job ends `dead` with cause `discarded`, and keeps `reason`."""

    def __init__(self, reason: str = "") -> None:
        """End the job, with the reason to keep."""
        self.reason = reason
        super().__init__(reason or "discarded by its handler")
