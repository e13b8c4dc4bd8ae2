"""The interruption limit (clause E4)."""

import pytest

from tidemill.core.poison import is_poison
from tidemill.values.retry import Retry


@pytest.mark.parametrize(
    ("limit", "lapses", "poison"),
    [(10, 0, False), (10, 10, False), (10, 11, True), (0, 0, False), (0, 1, True)],
)
def test_a_job_is_poison_when_its_lapses_exceed_the_limit(limit, lapses, poison) -> None:
    assert is_poison(Retry(interruption_limit=limit), lapses) is poison


def test_ten_lapses_are_borne_by_default() -> None:
    assert not is_poison(Retry(), 10)
    assert is_poison(Retry(), 11)
