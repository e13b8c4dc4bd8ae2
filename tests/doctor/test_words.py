"""How findings speak of durations, sizes, counts and lists."""

from datetime import timedelta

import pytest

from tidemill.doctor.words import counted, lasting, listed, size


@pytest.mark.parametrize(
    ("duration", "says"),
    [
        ({"microseconds": 40}, "0.04 ms"),
        ({"milliseconds": 12}, "12 ms"),
        ({"seconds": 1}, "1 s"),
        ({"seconds": 59.9}, "59 s"),
        ({"seconds": 60}, "1 min"),
        ({"minutes": 2, "seconds": 5}, "2 min 5 s"),
        ({"hours": 3, "seconds": 59}, "3 h"),
        ({"days": 3, "hours": 4}, "3 d 4 h"),
        ({"seconds": -5}, "0.00 ms"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(duration, says):
    assert lasting(timedelta(**duration)) == says


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (0, "0 B"), (999, "999 B"), (4_096, "4.1 kB"), (12_345_678, "12 MB"),
        (2 * 10**9, "2.0 GB"), (5 * 10**15, "5000 TB"),
    ],
)  # fmt: skip
def test_a_size_is_told_in_a_unit_that_fits(count, says):
    assert size(count) == says


def test_counts_agree_with_their_nouns():
    assert [counted(n, "job") for n in (0, 1, 2_000)] == ["0 jobs", "1 job", "2,000 jobs"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcd", "a, b, c and 1 more"),
    ],
)  # fmt: skip
def test_a_long_list_is_cut_with_the_number_of_the_rest(names, says):
    assert listed(list(names)) == says
