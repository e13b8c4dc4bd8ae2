"""Jobs in a transaction of the user's, on a store that has bridges (clause F4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, cast

import pytest

from tidemill.bridges.join import Joined, join
from tidemill.conformance.plugin import Transaction, Transactions
from tidemill.conformance.scenes import (
    claim_one,
    details,
    enqueue,
    new_job,
    register,
    start,
    state_of,
)
from tidemill.errors import BoundExceeded, LockNotGranted, TransactionRefused
from tidemill.store.complete import Complete
from tidemill.store.contract import Store
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued, NewJob
from tidemill.values.states import JobState

BRIEF: Final = timedelta(milliseconds=50)
"""How long a lock is waited for that is not given."""
ORDER: Final = "order 1"


def joined(store: Store, tx: object) -> Joined:
    """The store in a transaction of the user's, in which nothing is waited for long."""
    return cast("Joined", join(store, tx, lock_wait=BRIEF))


def enqueue_in(store: Store, transaction: Transaction, job: NewJob) -> Enqueued:
    """Store a job in a transaction of the user's."""
    (enqueued,) = joined(store, transaction.tx).perform(Enqueue((job,)))
    return enqueued


def ids(store: Store) -> list[JobId]:
    """Every job that others see."""
    return [job.id for job in store.perform_sync(ListJobs()).jobs]


def test_nothing_of_a_job_is_there_before_its_transaction_commits_and_then_it_can_be_claimed(
    store: Store, transactions: Transactions
) -> None:
    """F4."""
    job = new_job(idempotency_key="k")
    with transactions.begin() as transaction:
        said = enqueue_in(store, transaction, job)
        assert (said.job_id, said.state, said.deduplicated) == (job.id, JobState.READY, False)
        assert store.perform_sync(GetJob(job.id)) is None
        assert ids(store) == []
        transaction.commit()
    assert state_of(store, job.id) is JobState.READY
    assert claim_one(store, register(store)).id == job.id


@pytest.mark.parametrize("first", ["the job", "the row"])
@pytest.mark.parametrize("end", ["commit", "rollback", "neither"])
def test_a_job_and_a_row_of_the_users_are_both_there_or_neither_is(
    store: Store, transactions: Transactions, first: str, end: str
) -> None:
    """F4."""
    job = new_job()
    with transactions.begin() as transaction:
        if first == "the row":
            transaction.write(ORDER)
        enqueue_in(store, transaction, job)
        if first == "the job":
            transaction.write(ORDER)
        if end != "neither":
            {"commit": transaction.commit, "rollback": transaction.rollback}[end]()
    there = [job.id], [ORDER]
    assert (ids(store), list(transactions.rows())) == (there if end == "commit" else ([], []))


def test_a_rollback_leaves_no_trace_of_a_job_neither_its_id_nor_its_key(
    store: Store, transactions: Transactions
) -> None:
    """F4, A2, F3."""
    job = new_job(idempotency_key="k")
    with transactions.begin() as transaction:
        enqueue_in(store, transaction, job)
        transaction.rollback()
    other = new_job(id=job.id, priority=9, idempotency_key="k")
    assert enqueue(store, other) == (Enqueued(job.id, JobState.READY),)
    assert details(store, job.id).record.priority == other.priority


def test_a_key_of_a_committed_job_is_known_in_a_transaction(
    store: Store, transactions: Transactions
) -> None:
    """F3, F4."""
    (before,) = enqueue(store, new_job(idempotency_key="k"))
    with transactions.begin() as transaction:
        transaction.write(ORDER)
        said = enqueue_in(store, transaction, new_job(idempotency_key="k"))
        transaction.commit()
    assert (said.job_id, said.deduplicated) == (before.job_id, True)
    assert ids(store) == [before.job_id]


def test_a_key_that_an_open_transaction_holds_is_waited_for_in_bounds_and_once(
    store: Store, transactions: Transactions
) -> None:
    """F3, F4: nothing is tried again on a user's connection."""
    kept, refused = (new_job(idempotency_key="k") for _ in range(2))
    with transactions.begin() as first, transactions.begin() as second:
        enqueue_in(store, first, kept)
        with pytest.raises(LockNotGranted):
            enqueue_in(store, second, refused)
        assert sorted(second.statements) == sorted(set(second.statements))
        second.rollback()
        first.commit()
    assert ids(store) == [kept.id]


def test_a_transaction_in_which_a_lock_was_not_granted_takes_no_job_and_undoes_nothing_else(
    store: Store, transactions: Transactions
) -> None:
    """F4: what to do is the user's to decide."""
    kept = new_job(idempotency_key="k")
    with transactions.begin() as first, transactions.begin() as second:
        enqueue_in(store, first, kept)
        for _ in range(2):
            with pytest.raises((LockNotGranted, TransactionRefused)):
                enqueue_in(store, second, new_job(idempotency_key="k"))
        second.rollback()
        first.write(ORDER)
        first.commit()
    assert (ids(store), list(transactions.rows())) == ([kept.id], [ORDER])


def test_a_transaction_can_be_run_again_after_a_lock_was_not_granted(
    store: Store, transactions: Transactions
) -> None:
    """F4, F3."""
    with transactions.begin() as first, transactions.begin() as second:
        enqueue_in(store, first, new_job(idempotency_key="k"))
        with pytest.raises(LockNotGranted):
            enqueue_in(store, second, new_job(idempotency_key="k"))
        second.rollback()
        first.rollback()
        again = enqueue_in(store, second, new_job(idempotency_key="k"))
        second.write(ORDER)
        second.commit()
    assert (ids(store), list(transactions.rows())) == ([again.job_id], [ORDER])


def test_a_refused_job_leaves_the_transaction_as_it_was(
    store: Store, transactions: Transactions
) -> None:
    """F4, F5."""
    job = new_job()
    with transactions.begin() as transaction:
        transaction.write(ORDER)
        with pytest.raises(BoundExceeded):
            enqueue_in(store, transaction, new_job(payload=b"1" * (store.bounds.payload_bytes + 1)))
        enqueue_in(store, transaction, job)
        transaction.commit()
    assert (ids(store), list(transactions.rows())) == ([job.id], [ORDER])


def test_a_connection_without_an_open_transaction_is_refused_and_nothing_is_written(
    store: Store, transactions: Transactions
) -> None:
    """F4: a rollback would not undo it."""
    with (
        transactions.without() as tx,
        pytest.raises(TransactionRefused, match="no transaction open"),
    ):
        joined(store, tx).perform(Enqueue((new_job(),)))
    assert ids(store) == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_handlers_completion_is_there_with_its_row_or_neither_is(
    store: Store, transactions: Transactions, end: str
) -> None:
    """D8, F4."""
    job = start(store, register(store))
    told = Complete(job_id=job.id, attempt=job.attempt, worker=job.worker)
    with transactions.begin() as transaction:
        transaction.write(ORDER)
        joined(store, transaction.tx).perform(told)
        assert state_of(store, job.id) is JobState.RUNNING
        {"commit": transaction.commit, "rollback": transaction.rollback}[end]()
    there = JobState.SUCCEEDED, [ORDER]
    neither = JobState.RUNNING, list[str]()
    expected = there if end == "commit" else neither
    assert (state_of(store, job.id), list(transactions.rows())) == expected
