"""What the doctor says about the settings in the environment, and what it never says."""

from tests.doctor.facts import told

from tidemill.doctor.environment import judge_environment


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


def test_a_store_that_is_no_url_is_not_shown():
    (found,) = judge_environment({"TIDEMILL_STORE": "host=db password=s3cret"})
    assert found.found == "TIDEMILL_STORE=(not shown: it cannot be read as a URL)"
