"""What the doctor says about the settings in the environment, and what it never says."""

import pytest
from tests.doctor.facts import told

from tidemill.doctor.environment import judge_environment, shown


def test_a_mistyped_variable_is_named_and_its_value_is_not():
    ((_, _, found),) = told(judge_environment({"TIDEMILL_STROE": "s3cret", "HOME": "/x"}))
    assert found == "Nothing reads TIDEMILL_STROE."


def test_known_settings_are_shown_without_their_secrets():
    url = "postgresql://app:s3cret@db:5432/orders?sslpassword=s3cret"
    (found,) = judge_environment({"TIDEMILL_STORE": url, "TIDEMILL_APP": "orders:mill"})
    assert found.found == (
        "TIDEMILL_APP=orders:mill; TIDEMILL_STORE=postgresql://app@db:5432/orders?…"
    )


def test_an_environment_without_settings_says_so():
    (found,) = judge_environment({"PATH": "/bin"})
    assert found.found == "No setting is given by the environment."


@pytest.mark.parametrize("value", [
    "postgresql://app:s3cret@db:x/orders", "postgresql://[s3cret", "postgres://:s3cret@/x",
])  # fmt: skip
def test_a_malformed_url_shows_no_password(value):
    assert "s3cret" not in shown(value)
