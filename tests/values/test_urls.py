"""What is shown of a URL, and what never is."""

import pytest

from tidemill.values.urls import migrating, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app:s3cret@db:5432/jobs?password=s3cret", "postgresql://app@db:5432/jobs"),
        ("postgresql://db/jobs", "postgresql://db/jobs"),
        ("postgresql://app:s3cret@[::1]:5432/jobs", "postgresql://app@[::1]:5432/jobs"),
        ("sqlite:////srv/jobs.db?synchronous=FULL", "sqlite:////srv/jobs.db"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("memory://", "memory://"),
    ],
)
def test_a_url_is_shown_without_password_and_query(url, shown):
    assert without_secrets(url) == shown


@pytest.mark.parametrize("value", [
    "postgresql://app:s3cret@db:x/orders", "postgresql://[s3cret", "postgres://:s3cret@/x",
    "host=db password=s3cret", "app:s3cret@db/orders", "postgresql://app:s3cret@db/x#s3cret",
])  # fmt: skip
def test_a_malformed_url_shows_no_password(value):
    assert "s3cret" not in without_secrets(value)


@pytest.mark.parametrize(
    ("url", "query", "command"),
    [
        ("postgresql://app@db:5432/jobs", "", "--store postgresql://app@db:5432/jobs"),
        ("postgresql://db/jobs", "?schema=a", "--store 'postgresql://db/jobs?schema=a'"),
        ("sqlite:////srv/my jobs.db", "", "--store 'sqlite:////srv/my jobs.db'"),
        ("postgresql://app:s3cret@db/jobs", "", "--app MODULE:ATTRIBUTE"),
        ("postgresql://db/jobs?password=s3cret", "", "--app MODULE:ATTRIBUTE"),
        (None, "", "--app MODULE:ATTRIBUTE"),
    ],
)
def test_the_command_that_makes_the_tables_can_be_pasted_and_holds_no_password(url, query, command):
    assert migrating(url, query) == f"tidemill migrate {command}"
