"""P15: bad input ends in a clear state with a clear reason, and stops no worker."""

from __future__ import annotations

import pytest
from tests.promises import hostile, promised
from tests.promises.books import end_faults, stale_faults, strangers
from tests.waiting import wait_until

from tidemill.errors import BoundExceeded, EncodingError, InvalidValue
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob

FAILING = {
    hostile.too_much: "OutputTooLarge",
    hostile.unwritable: "EncodingError",
    hostile.surrogate: "EncodingError",
    hostile.not_a_number: "EncodingError",
    hostile.long_words: "ValueError",
    hostile.unspeakable: "Unspeakable",
    hostile.endless: "RecursionError",
    hostile.bad_tag: "InvalidValue",
    hostile.too_many_tags: "BoundExceeded",
    hostile.exits: "SystemExit",
    hostile.exits_in_thread: "SystemExit",
    hostile.interrupts: "KeyboardInterrupt",
    hostile.interrupts_in_thread: "KeyboardInterrupt",
    hostile.outsider: "Outsider",
    hostile.cancels_itself: "",
    hostile.stops_iteration: "StopIteration",
}
UNREADABLE = (b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"text": 5}', b'{"other": "x"}', b"{}")


def start_worker(site):
    return site.start_worker("--quarantine-unknown", "--import", "tests.promises.hostile")


def test_whatever_a_handler_returns_or_raises_its_job_ends_for_a_reason(site):
    worker = start_worker(site)
    kinds = {handle.sync.enqueue().id: kind for handle, kind in FAILING.items()}
    late = hostile.swallows.sync.enqueue().id
    canaries = [promised.quick.sync.enqueue(f"k{number}").id for number in range(5)]
    wait_until(site.all_ended)
    canaries += [promised.quick.sync.enqueue("last").id]
    wait_until(site.all_ended)
    assert worker.alive
    site.stop()

    for job in site.jobs(kinds):
        assert (job.state, job.cause) == ("dead", "attempts-exhausted"), job
        (end,) = job.attempts
        assert end.error is not None
        assert kinds[job.id] in end.error.kind, end
        assert len(end.error.message.encode()) <= DEFAULT_BOUNDS.error_message_bytes
        assert len(end.error.detail.encode()) <= DEFAULT_BOUNDS.error_detail_bytes
        assert job.output is None
    assert site.wrote("swallowed", "timeout")
    assert (
        site.job(late).output == b'"and yet"'
    )  # who ends well after being told to stop, ends well
    assert {site.state(job_id) for job_id in canaries} == {"succeeded"}
    assert_sound(site, [*kinds, late, *canaries])


def test_what_no_worker_can_read_or_knows_is_quarantined_for_a_reason(site):
    echo = hostile.echo.wire_name
    unreadable = [NewJob(id=JobId(new_id()), wire_name=echo, payload=each) for each in UNREADABLE]
    unknown = NewJob(id=JobId(new_id()), wire_name="hostile.nobody")
    site.store.perform_sync(Enqueue((*unreadable, unknown)))
    worker = start_worker(site)
    fine = hostile.echo.sync.enqueue("a NUL \0 and all").id
    wait_until(site.all_ended)
    assert worker.alive
    site.stop()

    for new in unreadable:
        job = site.job(new.id)
        assert (job.state, job.cause) == ("quarantined", "payload"), job
        assert job.attempts[-1].error.message
    job = site.job(unknown.id)
    assert (job.state, job.cause) == ("quarantined", "no-handler")
    assert site.job(fine).output == b'"a NUL \\u0000 and all"'
    assert_sound(site, [*(new.id for new in unreadable), unknown.id, fine])


def test_what_no_store_can_hold_is_refused_where_it_is_enqueued(site):
    echo = hostile.echo
    with pytest.raises(EncodingError, match="text"):
        echo.sync.enqueue(hostile.SURROGATE)
    with pytest.raises(BoundExceeded):
        echo.sync.enqueue("x" * hostile.MEGABYTES)
    for options in ({"tenant": "\0"}, {"idempotency_key": hostile.SURROGATE}, {"tags": ["\0"]}):
        with pytest.raises(InvalidValue):
            echo.with_options(**options).sync.enqueue("x")
    assert site.counts() == {}


def assert_sound(site, job_ids):
    faults = [*strangers(site, set(job_ids))]
    for job in site.jobs(job_ids):
        faults += [f"{job!r}: {fault}" for fault in (*end_faults(job), *stale_faults(job))]
    assert faults == []
    assert site.live_workers() == 0
