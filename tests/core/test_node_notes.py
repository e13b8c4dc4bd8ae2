"""What a node makes of what handlers say while they run (clause D2)."""

from uuid import UUID

import pytest
from tests.core.script import START, W1, W2, Script, pair_of

from tidemill.core.commands import DoExchange, DoTakeNotes
from tidemill.core.events import (
    CompletionBegun,
    DrainAsked,
    Finished,
    Noted,
    NotesAnswered,
    NotesFailed,
)
from tidemill.core.holdings import EXTRAS_AT_ONCE
from tidemill.core.notebook import LINES_AT_ONCE
from tidemill.values.endings import Raised, Returned, Stopped
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.notes import LogLine, Progress
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Reported, Verdict

HALF = Progress(0.5, "half", START)
MORE = Progress(0.6, "more", START)
PLAIN = NewJob(id=JobId(UUID(int=900)), wire_name="child")
KEYED = NewJob(id=JobId(UUID(int=901)), wire_name="child", idempotency_key="k")


def lines(*numbers: int) -> tuple[LogLine, ...]:
    return tuple(LogLine(number, START, f"line {number}") for number in numbers)


def say(script: Script, at: float, number: int, *numbers: int, progress=None, worker=W1):
    return script.tell(Noted(at, worker, pair_of(number), progress, lines(*numbers)))


def answered(script: Script, at: float, sent: DoTakeNotes, *answers: Answer):
    said = answers or (Answer.APPLIED,) * len(sent.notes)
    pairs = zip(sent.notes, said, strict=True)
    return script.tell(
        NotesAnswered(at, tuple(Reported(n.job_id, n.attempt, answer) for n, answer in pairs))
    )


def sent_lines(sent: DoTakeNotes) -> list[list[int]]:
    return [[line.number for line in note.lines] for note in sent.notes]


def end_all(script: Script, at: float, *numbers: int, left=None) -> None:
    children = left or {}
    endings = [Returned(children=children.get(number, ())) for number in numbers]
    pairs = zip(numbers, endings, strict=True)
    script.tell(*(Finished(at, W1, pair_of(number), ending) for number, ending in pairs))


def travelling(script: Script) -> list[int]:
    assert script.sent is not None
    return [outcome.job_id.int for outcome in script.sent.outcomes]


def reported(script: Script) -> Outcome:
    (outcome,) = script.only(DoExchange).outcomes
    return outcome


def test_what_a_handler_says_is_sent_at_once_when_nothing_was_sent_lately() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1, 2, progress=HALF)
    sent = script.only(DoTakeNotes)
    (note,) = sent.notes
    assert (sent.worker, note.job_id, note.attempt) == (W1, *pair_of(1))
    assert (note.progress, note.lines) == (HALF, lines(1, 2))


def test_what_is_said_meanwhile_goes_together_an_interval_after_the_answer() -> None:
    script = Script(slots=2, options={"note_interval": 3.0})
    script.start_jobs(0.0, 1, 2)
    say(script, 1.0, 1, 1)
    sent = script.only(DoTakeNotes)
    say(script, 1.5, 1, 2)
    assert not script.all(DoTakeNotes)
    answered(script, 2.0, sent)
    say(script, 2.5, 2, 1, progress=HALF)
    assert not script.all(DoTakeNotes)
    assert script.wake_at == 5.0
    script.wake(5.0)
    assert sent_lines(script.only(DoTakeNotes)) == [[2], [1]]


def test_of_several_words_of_progress_the_last_is_sent() -> None:
    script = Script(slots=1, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, progress=HALF)
    sent = script.only(DoTakeNotes)
    say(script, 1.1, 1, progress=MORE)
    answered(script, 1.2, sent)
    script.wake(2.2)
    (note,) = script.only(DoTakeNotes).notes
    assert note.progress == MORE


def test_nothing_is_sent_for_an_attempt_that_said_nothing() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1)
    assert not script.all(DoTakeNotes)
    script.finish(2.0, 1)
    assert (reported(script).lines, reported(script).progress) == ((), None)


def test_what_was_stored_does_not_ride_on_the_outcome() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1, progress=HALF)
    answered(script, 1.1, script.only(DoTakeNotes))
    say(script, 1.2, 1, 2)
    script.finish(1.3, 1, Returned(b"7"))
    assert (reported(script).lines, reported(script).progress) == (lines(2), None)


def test_what_was_sent_and_not_answered_rides_on_the_outcome_all_the_same() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1, progress=HALF)
    sent = script.only(DoTakeNotes)
    say(script, 1.1, 1, 2)
    script.finish(1.2, 1, Raised(ErrorInfo("ValueError", "cracked")))
    outcome = reported(script)
    assert outcome.verdict is Verdict.FAILED
    assert (outcome.lines, outcome.progress) == (lines(1, 2), HALF)
    answered(script, 1.3, sent)
    assert not script.all(DoTakeNotes)


@pytest.mark.parametrize("refused", [True, False])
def test_what_was_not_answered_is_sent_again_or_waits_for_the_outcome_if_it_was_refused(
    refused,
) -> None:
    script = Script(slots=1, options={"fault_delay": 10.0, "fault_delay_cap": 60.0})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1, progress=HALF)
    script.tell(NotesFailed(2.0, refused))
    say(script, 3.0, 1, 2)
    script.wake(50.0)
    if refused:
        assert not script.all(DoTakeNotes)
    else:
        assert sent_lines(script.only(DoTakeNotes)) == [[1, 2]]
    script.finish(51.0, 1)
    assert (reported(script).lines, reported(script).progress) == (lines(1, 2), HALF)


def test_notes_that_fail_are_sent_ever_less_often_and_never_given_up() -> None:
    options = {"fault_delay": 1.0, "fault_delay_cap": 6.0, "note_interval": 0.5}
    script = Script(slots=1, options=options)
    script.start_jobs(0.0, 1)
    say(script, 0.0, 1, 1)
    at, waits = 0.0, []
    for _ in range(5):
        script.tell(NotesFailed(at, refused=False))
        assert script.wake_at is not None
        waits.append(script.wake_at - at)
        at = script.wake_at
        script.wake(at)
        assert sent_lines(script.only(DoTakeNotes)) == [[1]]
    assert waits == [1.0, 2.0, 4.0, 6.0, 6.0]


def test_failing_notes_do_not_hold_up_the_exchange() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1)
    script.tell(NotesFailed(1.1, refused=False))
    script.finish(1.2, 1)
    assert script.only(DoExchange).claim is not None


def test_a_busy_row_is_noted_on_the_next_journey() -> None:
    script = Script(slots=1, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1)
    answered(script, 1.1, script.only(DoTakeNotes), Answer.BUSY)
    script.wake(2.1)
    assert sent_lines(script.only(DoTakeNotes)) == [[1]]


@pytest.mark.parametrize("answer", [Answer.STALE, Answer.GONE])
def test_what_was_rejected_is_left_to_the_report_of_the_end(answer) -> None:
    script = Script(slots=1, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1)
    answered(script, 1.1, script.only(DoTakeNotes), answer)
    say(script, 9.0, 1, 2)
    script.wake(9.5)
    assert not script.all(DoTakeNotes)
    script.finish(10.0, 1)
    assert reported(script).lines == lines(1, 2)


def test_an_attempt_that_completes_itself_says_the_rest_with_its_end() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(CompletionBegun(1.0, W1, pair_of(1)))
    say(script, 2.0, 1, 1, progress=HALF)
    assert not script.all(DoTakeNotes)
    script.finish(3.0, 1, Returned(b"7"))
    outcome = reported(script)
    assert outcome.in_transaction
    assert (outcome.lines, outcome.progress) == (lines(1), HALF)


def test_an_attempt_of_a_lost_lease_is_noted_no_more() -> None:
    script = Script(slots=1, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1)
    answered(script, 1.1, script.only(DoTakeNotes))
    script.lose(2.0)
    say(script, 3.0, 1, 2)
    script.gain(4.0, W2)
    say(script, 5.0, 1, 3)
    assert not script.all(DoTakeNotes)
    script.finish(6.0, 1, Stopped())
    assert not script.all(DoTakeNotes)


def test_one_that_was_given_up_is_noted_no_more() -> None:
    script = Script(slots=1, options={"patience": 1.0})
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 0.0))
    script.wake(2.5)
    assert reported(script).verdict is Verdict.RELEASED
    say(script, 3.0, 1, 1)
    assert not script.all(DoTakeNotes)


def test_handlers_are_heard_while_the_worker_drains() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.tell(DrainAsked(1.0, 30.0))
    say(script, 2.0, 1, 1)
    assert sent_lines(script.only(DoTakeNotes)) == [[1]]


def test_a_journey_has_a_bounded_number_of_lines_and_every_word_of_progress() -> None:
    script = Script(slots=3, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1, 2, 3)
    many = tuple(range(1, LINES_AT_ONCE))
    script.tell(
        *(Noted(1.0, W1, pair_of(number), None, lines(*many)) for number in (1, 2)),
        Noted(1.0, W1, pair_of(3), HALF, ()),
    )
    first = script.only(DoTakeNotes)
    assert [len(note.lines) for note in first.notes] == [LINES_AT_ONCE - 1, 1, 0]
    assert first.notes[2].progress == HALF
    answered(script, 1.1, first)
    script.wake(2.1)
    (rest,) = script.only(DoTakeNotes).notes
    assert (rest.job_id, len(rest.lines)) == (pair_of(2).job_id, LINES_AT_ONCE - 2)


def test_an_attempt_that_says_much_does_not_keep_its_neighbours_from_being_heard() -> None:
    script = Script(slots=2, options={"note_interval": 1.0})
    script.start_jobs(0.0, 1, 2)
    heard = []
    for turn in range(1, 5):
        much = range(turn * 10_000, turn * 10_000 + 2 * LINES_AT_ONCE)
        script.tell(
            Noted(2.0 * turn, W1, pair_of(1), None, lines(*much)),
            Noted(2.0 * turn, W1, pair_of(2), None, lines(turn)),
        )
        sent = script.only(DoTakeNotes)
        heard += [
            line.number for n in sent.notes if n.job_id == pair_of(2).job_id for line in n.lines
        ]
        answered(script, 2.0 * turn + 0.1, sent)
    assert heard == [1, 2, 3, 4]


def test_a_refused_journey_is_made_one_by_one_and_the_guilty_note_is_left_to_its_outcome() -> None:
    script = Script(slots=3, options={"note_interval": 5.0})
    script.start_jobs(0.0, 1, 2, 3)
    events = [Noted(1.0, W1, pair_of(number), None, lines(1)) for number in (1, 2, 3)]
    script.tell(*events)
    script.tell(NotesFailed(1.1, refused=True))
    seen = []
    while script.all(DoTakeNotes):
        (note,) = script.only(DoTakeNotes).notes
        seen.append(note.job_id.int)
        if note.job_id == pair_of(2).job_id:
            script.tell(NotesFailed(1.2, refused=True))
        else:
            answered(script, 1.2, script.only(DoTakeNotes))
    assert seen == [1, 2, 3]
    script.finish(1.3, 2)
    assert reported(script).lines == lines(1)


def test_outcomes_that_carry_much_travel_in_several_exchanges() -> None:
    script = Script(slots=4)
    script.start_jobs(0.0, 1, 2, 3, 4)
    for number in (1, 2, 3):
        say(script, 0.5, number, *range(1, EXTRAS_AT_ONCE // 2))
    end_all(script, 1.0, 1, 2, 3, 4)
    assert travelling(script) == [1, 2]
    script.answer(1.1)
    assert travelling(script) == [3, 4]


def test_an_outcome_that_carries_more_than_that_travels_all_the_same() -> None:
    script = Script(slots=2)
    script.start_jobs(0.0, 1, 2)
    say(script, 0.5, 1, *range(1, EXTRAS_AT_ONCE + 2))
    end_all(script, 1.0, 1, 2)
    assert travelling(script) == [1]
    script.answer(1.1)
    assert travelling(script) == [2]


def test_children_ride_on_the_success_that_left_them() -> None:
    script = Script(slots=1)
    script.start_jobs(0.0, 1)
    script.finish(1.0, 1, Returned(None, children=(PLAIN, KEYED)))
    assert reported(script).children == (PLAIN, KEYED)


def test_the_wait_for_notes_is_no_longer_than_the_interval() -> None:
    script = Script(slots=1, options={"note_interval": 2.5})
    script.start_jobs(0.0, 1)
    say(script, 1.0, 1, 1)
    answered(script, 1.5, script.only(DoTakeNotes))
    say(script, 1.6, 1, 2)
    assert script.wake_at == 4.0
