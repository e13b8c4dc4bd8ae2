"""When a lease is live, and whose registration may be repeated (clauses A3, C5)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tidemill.core.lease import Lease, require_repeat
from tidemill.errors import WorkerIdUsed
from tidemill.values.ids import WorkerId
from tidemill.values.workers import WorkerInfo

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LIVE = Lease(NOW + MICROSECOND, lapsed=False, deregistered=False)
INFO = WorkerInfo(
    id=WorkerId(UUID(int=1)), host="h", pid=1, version="0", queues=("default",),
    wire_names=None, slots=1,
)  # fmt: skip


def test_a_lease_is_dead_at_its_expiry_instant() -> None:
    assert LIVE.is_live(NOW)
    assert not LIVE.is_live(NOW + MICROSECOND)


def test_a_lease_that_was_ended_is_dead_whatever_its_expiry_says() -> None:
    assert not replace(LIVE, lapsed=True).is_live(NOW)
    assert not replace(LIVE, deregistered=True).is_live(NOW)


def test_the_very_same_registration_under_a_live_lease_may_be_repeated() -> None:
    require_repeat(INFO, INFO, LIVE, NOW)


@pytest.mark.parametrize(
    ("there", "lease", "why"),
    [
        (INFO, replace(LIVE, deregistered=True), "deregistered"),
        (INFO, replace(LIVE, lapsed=True), "lapsed"),
        (INFO, replace(LIVE, expires_at=NOW), "lapsed"),
        (replace(INFO, pid=2), LIVE, "presents itself otherwise"),
        (replace(INFO, wire_names=frozenset()), LIVE, "presents itself otherwise"),
    ],
)
def test_any_other_registration_under_a_known_id_is_refused_with_the_reason(
    there, lease, why
) -> None:
    with pytest.raises(WorkerIdUsed, match=why):
        require_repeat(INFO, there, lease, NOW)
