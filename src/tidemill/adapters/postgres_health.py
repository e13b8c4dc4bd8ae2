"""What a PostgreSQL server says of itself, whatever the schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidemill.adapters.postgres_site import Site, connect
from tidemill.drivers.postgres_session import beginnings
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.drivers.run import run
from tidemill.sql.programs.doctor import examine_database
from tidemill.values.doctor import DatabaseHealth

PRODUCT: Final = "PostgreSQL"


def examine(site: Site) -> DatabaseHealth:
    """Ask on a connection of its own, in one read-only transaction, within the site's limits.

    Statements are not prepared, so that a pooler which mixes them up can still be told of. One is
    seen by the number of the server's process, which it cannot know when it greets a client: the
    greeting has another number than the process that answers.

    Raises:
        StoreError: the server does not answer.
    """
    connection = connect(site.url, "off")
    try:
        greeted_by = connection.info.backend_pid
        executor = PsycopgExecutor(connection, site.catalogue, beginnings(site.limits), site.clock)
        program = examine_database(site.env, PRODUCT, site.url.shown)
        health = run(program, executor, write=False)
    finally:
        connection.close()
    settings = dict(health.settings)
    answered_by = settings.pop("session_pid")
    settings["pooler"] = "no" if answered_by == str(greeted_by) else "yes"
    settings["prepared_statements"] = site.prepared
    return replace(health, settings=settings)
