"""What is shown of a URL, and what never is."""

import pytest

from tidemill.values.urls import without_secrets


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
