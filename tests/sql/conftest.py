"""PostgreSQL for the tests of what it plans."""

from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers
