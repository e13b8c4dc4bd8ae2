"""What a claim does with the job that is next in line (clauses E4, F1, J3)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tidemill.core.claim import Candidate, Fate, fate, queues_of
from tidemill.core.held import known_by
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import Attempt
from tidemill.values.retry import Retry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Candidate("mill.grind", Attempt(0), 0, Retry(interruption_limit=2), None)
EXPIRED = replace(PLAIN, not_after=NOW)
POISON = replace(PLAIN, lapses=3)
KNOWN = frozenset({"mill.grind"})
OTHERS = frozenset({"mill.sift"})


@pytest.mark.parametrize(
    ("job", "known", "expected"),
    [
        (PLAIN, KNOWN, Fate.START),
        (PLAIN, None, Fate.START),
        (PLAIN, OTHERS, Fate.HOLD),
        (POISON, None, Fate.BURY),
        (replace(PLAIN, lapses=2), None, Fate.START),
        (EXPIRED, None, Fate.EXPIRE),
        (replace(EXPIRED, attempt=Attempt(1)), None, Fate.START),
    ],
)
def test_a_job_starts_unless_it_may_not(job, known, expected) -> None:
    assert fate(job, known, NOW) is expected


def test_expiry_comes_before_poison_and_poison_before_an_unknown_name() -> None:
    assert fate(replace(POISON, not_after=NOW), OTHERS, NOW) is Fate.EXPIRE
    assert fate(POISON, OTHERS, NOW) is Fate.BURY


def test_the_queues_of_a_claim_are_each_named_once_in_order() -> None:
    shares = (Share("b", 1), Share("a", 2), Share("b", 3))
    assert queues_of(ClaimRequest(shares=shares, limit=6, wire_names=None)) == ("b", "a")


def test_a_name_is_known_if_one_worker_knows_it_or_knows_all() -> None:
    assert known_by([]) == frozenset()
    assert known_by([KNOWN, OTHERS]) == KNOWN | OTHERS
    assert known_by([KNOWN, None]) is None
