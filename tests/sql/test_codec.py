"""What is written reads back: states, policies, plain values."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.sql import codes
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.progress import read_progress, write_progress
from tidemill.sql.retry import decode_retry, encode_retry
from tidemill.sql.unsettled import Unsettled, read_mark, write_mark
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import NewJob
from tidemill.values.notes import Progress
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import DEFAULT_RETRY, Backoff, Retry
from tidemill.values.states import Held, JobState
from tidemill.values.tags import Tag

DIALECT = SqliteDialect()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPANS = st.timedeltas(timedelta(0), timedelta(days=9999))

POLICIES = st.builds(
    Retry,
    max_attempts=st.integers(1, 1000),
    backoff=st.sampled_from(Backoff),
    delays=st.lists(SPANS, min_size=1, max_size=5).map(tuple),
    factor=st.floats(1, 1e6),
    cap=SPANS,
    jitter=st.floats(0, 1),
    count_lapses=st.booleans(),
    interruption_limit=st.integers(0, 1000),
    retry_on=st.lists(st.text(), max_size=3).map(tuple),
    discard_on=st.lists(st.text(), max_size=3).map(tuple),
)

TAGS = st.frozensets(st.builds(Tag, st.text(min_size=1), st.text()), max_size=3)
INSTANTS = st.datetimes(timezones=st.just(UTC))
JOBS = st.builds(
    NewJob,
    id=st.uuids().map(JobId),
    wire_name=st.text(min_size=1),
    payload=st.binary(max_size=50),
    priority=st.integers(-32768, 32767),
    delay=st.none() | st.timedeltas(),
    due_at=st.none() | INSTANTS,
    expires=st.none() | SPANS,
    timeout=st.none() | SPANS,
    retry=POLICIES,
    idempotency_key=st.none() | st.text(),
    tags=TAGS,
    rerun_of=st.none() | st.uuids().map(JobId),
)


@given(st.builds(Unsettled, TAGS, st.lists(JOBS, max_size=2).map(tuple)))
def test_what_a_completion_left_to_do_reads_back_as_it_was_written(left):
    assert read_mark(write_mark(left)) == left


@given(st.none() | st.floats(0, 1), st.text(), INSTANTS)
def test_progress_reads_back_as_it_was_written(fraction, message, at):
    read = read_progress(write_progress(Attempt(3), Progress(fraction, message, at)))
    assert (read.attempt, read.fraction, read.message, read.at) == (3, fraction, message, at)


@given(POLICIES)
def test_every_policy_reads_back_as_it_was_written(policy):
    assert decode_retry(encode_retry(policy)) == policy


def test_the_default_policy_costs_nothing():
    assert encode_retry(DEFAULT_RETRY) is None
    assert decode_retry(None) == DEFAULT_RETRY


@pytest.mark.parametrize("stored", ["", "{", '{"jitter": 7}', '{"max_attempts": "x"}', "[]"])
def test_a_policy_that_no_longer_reads_is_refused(stored):
    with pytest.raises(ValueError, match="cannot be read"):
        decode_retry(stored)


def test_what_a_newer_version_added_to_a_policy_is_passed_over():
    assert decode_retry('{"max_attempts": 9, "invented": 1}') == Retry(max_attempts=9)


def test_every_word_has_a_code_and_reads_back():
    for words, table, read in (
        (JobState, codes.STATE_CODES, codes.state_of),
        (Verdict, codes.VERDICT_CODES, codes.verdict_of),
        (Held, codes.HELD_CODES, codes.HELD_OF.__getitem__),
    ):
        assert {read(table[word]) for word in words} == set(words)
        for word in words:
            assert DIALECT.encode(word) == table[word]


@pytest.mark.parametrize("code", [99, -1, "ready", None, b"", []])
def test_a_code_that_nobody_knows_stands_for_no_other_word(code):
    assert codes.state_of(code) is codes.UNKNOWN_STATE
    assert codes.verdict_of(code) is None


def test_a_code_never_changes_its_word():
    states = "scheduled ready awaiting running succeeded cancelled dead quarantined"
    assert " ".join(codes.STATES) == states
    verdicts = "succeeded failed discarded cancelled unroutable released snoozed lapsed"
    assert " ".join(codes.VERDICTS) == verdicts


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_instant_keeps_its_microsecond(instant):
    assert DIALECT.instant(DIALECT.encode(instant)) == instant


def test_an_instant_of_another_zone_is_kept_in_utc():
    east = timezone(timedelta(hours=5))
    assert DIALECT.encode(EPOCH.astimezone(east)) == 0
    assert DIALECT.instant(0).tzinfo is UTC


@given(st.uuids(), st.uuids())
def test_ids_sort_on_disk_as_they_sort_in_memory(one, other):
    assert (DIALECT.encode(one) < DIALECT.encode(other)) == (one < other)


def test_a_subclass_of_a_known_type_is_encoded_like_it():
    class DriversUUID(UUID):
        pass

    plain = UUID(int=7)
    assert DIALECT.encode(DriversUUID(int=7)) == plain.bytes


def test_a_type_that_nobody_knows_is_a_fault():
    with pytest.raises(TypeError, match="No encoding for object"):
        DIALECT.encode(object())
