"""PostgreSQL for the tests of the drivers."""

from tests.postgres.servers import *  # noqa: F403 - the fixtures of the servers
