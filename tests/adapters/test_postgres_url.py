"""A PostgreSQL URL reaches both drivers as it was given, but for what is ours."""

import pytest

from tidemill.adapters.postgres_url import read_url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://miller:s3cret@mill.example:5433/grain",
        "postgresql://[::1]:5432/grain",
        "postgresql:///grain",
        "postgresql://",
        "postgresql:///grain?host=%2Fvar%2Frun%2Fpostgresql",
        "postgres://miller@mill.example",
    ],
)
def test_a_url_reaches_both_drivers_as_it_was_given(url):
    read = read_url(url)
    assert (read.libpq, read.asyncpg) == (url, url)


def test_what_is_ours_reaches_neither():
    read = read_url("postgresql:///grain?schema=x&sslmode=disable", frozenset({"schema"}))
    assert read.libpq == read.asyncpg == "postgresql:///grain?sslmode=disable"
    assert read.options == {"schema": "x"}


def test_options_of_libpq_alone_do_not_reach_asyncpg():
    read = read_url("postgresql:///grain?connect_timeout=3")
    assert (read.libpq, read.asyncpg) == (
        "postgresql:///grain?connect_timeout=3",
        "postgresql:///grain",
    )
