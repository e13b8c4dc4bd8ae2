"""Recording how an attempt ended never fails (clauses D6, D7)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.storable import (
    OUTCOME_REFUSED,
    OUTPUT_TOO_LARGE,
    bare,
    storable,
    storable_line,
    storable_note,
    storable_progress,
    storable_text,
)
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.ids import Attempt, JobId
from tidemill.values.jobs import NewJob
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.tags import Tag

SUCCESS = Outcome(job_id=JobId(UUID(int=1)), attempt=Attempt(2), verdict=Verdict.SUCCEEDED)
START = datetime(2026, 1, 1, tzinfo=UTC)
LINE = LogLine(1, START, "a stone")
CHILD = NewJob(id=JobId(UUID(int=2)), wire_name="child")
SMALL = Bounds(
    output_bytes=4,
    name_bytes=40,
    key_bytes=40,
    error_message_bytes=50,
    error_detail_bytes=60,
    tags_per_job=3,
)
any_text = st.text(st.characters(codec=None), max_size=200)


@given(any_text, st.integers(0, 120))
def test_any_text_becomes_text_that_encodes_within_the_limit(text, limit) -> None:
    kept = storable_text(text, limit)
    assert "\0" not in kept
    assert len(kept.encode("utf-8")) <= limit


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_fits_is_kept_as_it_is(text) -> None:
    assert storable_text(text, len(text.encode())) == text


@given(any_text, st.integers(0, 120))
def test_making_text_storable_twice_changes_nothing_more(text, limit) -> None:
    once = storable_text(text, limit)
    assert storable_text(once, limit) == once


def test_nul_and_lone_surrogates_are_written_as_escapes() -> None:
    assert storable_text("a\0b\ud800c\udfff", 99) == r"a\x00b\ud800c\udfff"


def test_what_is_cut_says_how_long_it_was_and_ends_on_a_character() -> None:
    assert storable_text("x" * 5_000, 40) == "x" * 17 + " … [cut: 5,000 bytes]"
    assert storable_text("🜂" * 1_250, 41).startswith("🜂🜂🜂🜂 …")


@pytest.mark.parametrize("limit", range(30))
def test_even_a_limit_shorter_than_the_note_is_kept(limit) -> None:
    assert len(storable_text("🜂" * 100, limit).encode()) <= limit


def test_a_plain_outcome_is_left_alone() -> None:
    assert storable(SUCCESS, DEFAULT_BOUNDS) is SUCCESS
    full = replace(SUCCESS, output=b"1", tags=frozenset({Tag("a", "b")}), cause="payload")
    assert storable(full, DEFAULT_BOUNDS) == full


def test_every_text_of_an_error_is_bounded_by_its_own_bound() -> None:
    error = ErrorInfo("k" * 99, "m" * 99, "d" * 99, ancestry=("ValueError",))
    kept = storable(replace(SUCCESS, verdict=Verdict.FAILED, error=error), SMALL).error
    assert kept is not None
    assert [len(text.encode()) for text in (kept.kind, kept.message, kept.detail)] == [40, 50, 60]
    assert kept.ancestry == ("ValueError",)


def test_an_output_over_its_bound_makes_a_failed_attempt_with_that_reason() -> None:
    large = replace(SUCCESS, output=b"12345", tags=frozenset({Tag("a")}))
    kept = storable(large, Bounds(output_bytes=4))
    assert (kept.job_id, kept.attempt, kept.verdict) == (large.job_id, 2, Verdict.FAILED)
    assert (kept.output, kept.tags) == (None, frozenset())
    assert kept.error is not None
    assert kept.error.kind == OUTPUT_TOO_LARGE
    assert "5 bytes" in kept.error.message
    assert "4 bytes" in kept.error.message


def test_an_output_of_its_bound_is_kept() -> None:
    fits = replace(SUCCESS, output=b"1234")
    assert storable(fits, SMALL) == fits


def test_tags_are_escaped_cut_and_counted() -> None:
    tags = {Tag("", "no key"), Tag("n\0l", "\ud800"), Tag("k" * 99, "v" * 99)}
    kept = storable(replace(SUCCESS, tags=frozenset(tags)), SMALL).tags
    assert Tag(r"n\x00l", r"\ud800") in kept
    assert len(kept) == 2
    assert max(len(text.encode()) for tag in kept for text in tag) == 40
    many = frozenset(Tag(f"t{n}") for n in range(9))
    assert storable(replace(SUCCESS, tags=many), SMALL).tags == {Tag("t0"), Tag("t1"), Tag("t2")}


def test_a_cause_is_escaped() -> None:
    unroutable = replace(SUCCESS, verdict=Verdict.UNROUTABLE, cause="a\0")
    assert storable(unroutable, SMALL).cause == r"a\x00"


texts = st.builds(ErrorInfo, any_text, any_text, any_text)
tag_sets = st.frozensets(st.builds(Tag, any_text, any_text), max_size=9)


@given(
    st.sampled_from(Verdict),
    st.none() | texts,
    st.none() | any_text,
    st.binary(max_size=9),
    tag_sets,
)
def test_any_outcome_becomes_one_that_encodes_and_is_the_same_the_second_time(
    verdict, error, cause, output, tags
) -> None:
    sent = replace(SUCCESS, verdict=verdict, error=error, cause=cause, output=output, tags=tags)
    kept = storable(sent, SMALL)
    assert storable(kept, SMALL) == kept
    assert (kept.job_id, kept.attempt) == (sent.job_id, sent.attempt)
    assert len(kept.tags) <= SMALL.tags_per_job
    found = [text for tag in kept.tags for text in tag]
    found += [kept.cause or ""]
    found += [kept.error.kind, kept.error.message, kept.error.detail] if kept.error else []
    for text in found:
        assert "\0" not in text
        text.encode("utf-8")


def test_a_refused_success_first_gives_up_what_is_only_kept() -> None:
    full = replace(SUCCESS, output=b"1", tags=frozenset({Tag("a")}), lines=(LINE,))
    assert bare(full, "no") == replace(SUCCESS, output=b"1")


def test_a_refused_success_that_left_jobs_is_a_failed_attempt_that_keeps_what_it_has_said() -> None:
    full = replace(SUCCESS, children=(CHILD,), tags=frozenset({Tag("a")}), lines=(LINE,))
    least = bare(full, "a trigger forbids it")
    assert (least.verdict, least.children, least.tags) == (Verdict.FAILED, (), frozenset())
    assert least.lines == (LINE,)
    assert least.error is not None
    assert "a trigger forbids it" in least.error.message


@pytest.mark.parametrize("gain", [{"output": b"1"}, {"children": (CHILD,)}, {}])
def test_the_bare_record_of_a_success_that_keeps_nothing_is_a_failure_with_that_reason(
    gain,
) -> None:
    full = replace(SUCCESS, **gain)
    least = bare(full, "no")
    assert (least.job_id, least.attempt, least.verdict) == (full.job_id, 2, Verdict.FAILED)
    assert (least.output, least.children) == (None, ())
    assert least.error is not None
    assert least.error.kind == OUTCOME_REFUSED
    assert storable(least, DEFAULT_BOUNDS) == least


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.SUCCEEDED])
def test_the_barest_record_of_any_other_end_keeps_what_decides_over_the_job(verdict) -> None:
    error = ErrorInfo("app.Broken", "it broke", "Traceback", ancestry=("app.Broken", "ValueError"))
    wait = timedelta(seconds=7)
    full = replace(
        SUCCESS, verdict=verdict, error=error, delay=wait, cause="payload",
        output=b"1", tags=frozenset({Tag("a")}),
    )  # fmt: skip
    least = bare(full, "no")
    assert (least.verdict, least.delay, least.cause) == (verdict, wait, "payload")
    assert least.error == replace(error, detail="")
    assert (least.output, least.tags) == (None, frozenset())


def test_the_barest_record_of_an_end_without_an_error_has_none() -> None:
    assert bare(replace(SUCCESS, verdict=Verdict.RELEASED), "no").error is None


@given(any_text, st.text(max_size=100))
def test_any_line_becomes_one_that_fits_and_stays_the_same_after_that(message, fields) -> None:
    bounds = Bounds(log_line_bytes=90)
    once = storable_line(LogLine(1, START, message, fields), bounds)
    assert len(once.message.encode()) <= 90
    assert "\0" not in once.message + once.fields
    assert storable_line(once, bounds) == once


def test_fields_give_way_to_a_long_message() -> None:
    bounds = Bounds(log_line_bytes=100)
    fields = '{"a":"' + "o" * 50 + '"}'
    kept = storable_line(LogLine(1, START, "x" * 50, fields), bounds)
    assert (kept.message, kept.fields) == ("x" * 50, '{"cut":"58 bytes"}')
    assert storable_line(LogLine(1, START, "x" * 42, fields), bounds).fields == fields


@given(st.floats())
def test_any_fraction_becomes_one_from_0_to_1_or_none(said) -> None:
    kept = storable_progress(Progress(said, "", START), DEFAULT_BOUNDS).fraction
    assert kept is None or 0 <= kept <= 1
    if 0 <= said <= 1:
        assert kept == said


def test_a_note_is_made_storable_whole() -> None:
    said = Note(
        job_id=SUCCESS.job_id,
        attempt=SUCCESS.attempt,
        progress=Progress(7.0, "a\0b", START),
        lines=(LogLine(0, START, "none"), LogLine(1, START, "c\0d"), LogLine(3, START, "over")),
    )
    kept = storable_note(said, Bounds(log_lines=1))
    assert kept.progress == Progress(1.0, "a\\x00b", START)
    assert kept.lines == (LogLine(1, START, "c\\x00d"),)


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.SUCCEEDED])
def test_children_go_with_a_success_and_with_nothing_else(verdict) -> None:
    full = replace(SUCCESS, verdict=verdict, children=(CHILD,))
    assert storable(full, DEFAULT_BOUNDS).children == ()


def test_a_success_with_a_child_that_cannot_be_stored_has_failed_and_says_why() -> None:
    bad = replace(CHILD, payload=b" " * 5)
    full = replace(SUCCESS, output=b"1", children=(CHILD, bad), lines=(LINE,))
    kept = storable(full, Bounds(payload_bytes=4))
    assert (kept.verdict, kept.output, kept.children) == (Verdict.FAILED, None, ())
    assert kept.lines == (LINE,)
    assert kept.error is not None
    assert kept.error.kind == "tidemill.ChildRefused"
    assert "Payload" in kept.error.message
