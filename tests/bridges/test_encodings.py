"""Connections on which the application speaks another encoding than UTF-8."""

from contextlib import closing
from typing import Any

import psycopg
import pytest
from tests.bridges.conftest import Shop

from tidemill.errors import InvalidValue
from tidemill.store.monitor import GetJob


def connected(shop: Shop, encoding: str) -> Any:
    return closing(psycopg.connect(shop.place, client_encoding=encoding))


def test_text_that_the_encoding_lacks_is_refused_and_leaves_no_half_of_a_job(on_postgres: Shop):
    with connected(on_postgres, "latin1") as connection:
        connection.execute("INSERT INTO orders VALUES ('o-1')")
        with pytest.raises(InvalidValue, match="insert_tag"):
            on_postgres.capture.with_options(tags=["€"]).enqueue_in(connection, "p-1")
        connection.commit()
    assert (on_postgres.ids(), on_postgres.orders()) == ([], ["o-1"])


def test_after_such_a_refusal_the_transaction_has_its_own_lock_timeout(on_postgres: Shop) -> None:
    with connected(on_postgres, "latin1") as connection:
        connection.execute("SET LOCAL lock_timeout = '1min'")
        with pytest.raises(InvalidValue, match="key_holders"):
            on_postgres.keyed("€").enqueue_in(connection, "p-1")
        assert connection.execute("SHOW lock_timeout").fetchone() == ("1min",)


@pytest.mark.parametrize("encoding", ["latin1", "sql_ascii", "utf8"])
def test_keys_and_tags_are_stored_and_known_again(on_postgres: Shop, encoding: str) -> None:
    keyed = on_postgres.keyed("clé").with_options(tags=["été"])
    with connected(on_postgres, encoding) as connection:
        first = keyed.enqueue_in(connection, "p-1")
        second = keyed.enqueue_in(connection, "p-1")
        connection.commit()
    assert (second.id, second.deduplicated) == (first.id, True)
    found = on_postgres.store.perform_sync(GetJob(first.id))
    assert found is not None
    assert found.record.idempotency_key == "clé"
    assert [tag.key for tag in found.tags] == ["été"]
