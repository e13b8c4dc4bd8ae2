"""What attempts say of themselves: `tidemill jobs log`, and its part of `tidemill jobs show`."""

import io
from datetime import timedelta

import pytest
from rich.console import Console
from tests.cli.conftest import START

from tidemill.cli import exits, job_lines, job_text
from tidemill.shell.identity import new_id
from tidemill.store.monitor import GetJob
from tidemill.store.notes import ReadLog
from tidemill.values.ids import Attempt
from tidemill.values.jobs import JobDetails
from tidemill.values.notes import JobLine, JobProgress
from tidemill.values.outcomes import ErrorInfo, Verdict
from tidemill.values.retry import Retry

STEER = "\x1b[2J\r\u202e"
HARMLESS = r"\x1b[2J\r\u202e"


def on_terminal(show) -> list[str]:
    """The lines on a terminal of 80 columns."""
    out = io.StringIO()
    show(Console(file=out, width=80, force_terminal=True, color_system=None, markup=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def stored(shop, job_id) -> JobDetails:
    details = shop.store.perform_sync(GetJob(job_id))
    assert details is not None
    return details


def shown(shop, job_id, **options) -> str:
    """`tidemill jobs show` at the present virtual instant, as a person reads it."""
    job, now = stored(shop, job_id), shop.clock()
    show = {"traceback": False, "now": now, **options}
    return "\n".join(on_terminal(lambda out: job_text.show_job(out, job, **show)))


def told(fields: str) -> str:
    return job_lines.fields_text(
        JobLine(attempt=Attempt(1), number=1, at=START, message="", fields=fields)
    )


def far(fraction: float | None, message: str = "") -> JobProgress:
    return JobProgress(attempt=Attempt(2), fraction=fraction, message=message, at=START)


@pytest.fixture
def logged(shop):
    """A job whose first attempt logged two lines and failed, and whose second logged one."""
    job_id, worker = shop.running(retry=Retry.immediate())
    shop.log(worker, job_id, ("copied", '{"rows":12,"file":"a b"}'), ("done", ""))
    shop.report(worker, job_id, Verdict.FAILED, error=ErrorInfo("builtins.ValueError", "no"))
    shop.clock.advance(timedelta(seconds=45))
    assert shop.claim(worker) == 1
    shop.log(worker, job_id, ("again", ""))
    return job_id


def test_a_log_shows_each_line_with_its_instant_attempt_and_fields(shop, logged):
    assert shop.run("jobs", "log", str(logged)).stdout.splitlines() == [
        "TIME                  ATTEMPT  MESSAGE",
        '2026-03-01 09:00:00Z        1  copied  rows=12 file="a b"',
        "2026-03-01 09:00:00Z        1  done",
        "2026-03-01 09:00:45Z        2  again",
    ]


def test_one_attempt_can_be_asked_for(shop, logged):
    def messages(*options):
        return [
            line["message"] for line in shop.json("jobs", "log", str(logged), *options)["lines"]
        ]

    assert messages("--attempt", "1") == ["copied", "done"]
    assert messages("--attempt", "2") == ["again"]
    assert messages() == ["copied", "done", "again"]
    assert messages("--attempt", "3") == messages("--attempt", str(1 << 70)) == []


def test_a_log_pages_to_its_end_also_that_of_one_attempt(shop, logged):
    def pages(*options):
        cursor, found = [], []
        while True:
            page = shop.json("jobs", "log", str(logged), "-n", "1", *options, *cursor)
            found.append([line["message"] for line in page["lines"]])
            if page["next_cursor"] is None:
                return found
            cursor = ["--cursor", page["next_cursor"]]

    assert pages() == [["copied"], ["done"], ["again"]]
    assert pages("--attempt", "2") == [["again"]]
    assert [page for page in pages("--attempt", "1") if page] == [["copied"], ["done"]]
    early = shop.json("jobs", "log", str(logged), "-n", "1")["next_cursor"]
    later = shop.json("jobs", "log", str(logged), "--attempt", "2", "--cursor", early)
    assert [line["message"] for line in later["lines"]] == ["again"]


def test_a_log_as_json_has_stable_keys(shop, logged):
    page = shop.json("jobs", "log", str(logged))
    assert set(page) == {"lines", "next_cursor"}
    assert page["lines"][0] == {
        "attempt": 1, "number": 1, "at": "2026-03-01T09:00:00Z", "message": "copied",
        "fields": {"rows": 12, "file": "a b"},
    }  # fmt: skip
    assert page["lines"][1]["fields"] == {}
    assert shop.json("jobs", "show", str(logged))["log"] == page["lines"]


def test_a_log_says_on_stderr_that_there_is_more_or_nothing(shop, logged):
    more = shop.run("jobs", "log", str(logged), "--limit", "2")
    cursor = shop.json("jobs", "log", str(logged), "--limit", "2")["next_cursor"]
    assert more.stderr == f"There are more: --cursor {cursor}\n"
    silent = shop.enqueue()
    result = shop.run("jobs", "log", str(silent))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Job {silent} has nothing in its log.\n"
    third = shop.run("jobs", "log", str(logged), "--attempt", "3").stderr
    assert third == f"Attempt 3 of job {logged} has nothing in its log.\n"


def test_a_limit_beyond_the_page_size_is_told_if_lines_are_left_out(shop):
    job_id, worker = shop.running()
    shop.log(worker, job_id, *[("stone", "")] * 201)
    told = shop.run("jobs", "log", str(job_id), "--limit", "5000").stderr
    assert told.startswith("This is one page of 200, the most that the store shows at once.\n")


def test_a_job_that_is_not_there_is_one_sentence_and_exit_code_1(shop):
    missing = new_id()
    result = shop.run("jobs", "log", str(missing))
    assert (result.exit_code, result.stdout) == (exits.UNCHANGED, "")
    assert result.stderr.startswith(f"Error: There is no job {missing} in this store.")


@pytest.mark.parametrize(
    "options",
    [
        ["--cursor", "no cursor"],
        ["--cursor", "?", "--attempt", "1"],
        ["--attempt", "0"],
        ["-n", "0"],
    ],
)
def test_what_cannot_work_is_exit_code_2(shop, logged, options):
    result = shop.run("jobs", "log", str(logged), *options)
    assert (result.exit_code, result.stdout) == (exits.USAGE, "")
    assert result.stderr.count("Error: ") == 1


def test_text_that_would_steer_a_terminal_is_escaped(shop):
    job_id, worker = shop.running()
    fields = f'{{"{STEER[-1]}":"{STEER[-1]}"}}'
    shop.log(worker, job_id, (STEER, fields))
    shop.say(worker, job_id, 0.5, STEER)
    log = shop.run("jobs", "log", str(job_id)).stdout
    page = shop.run("jobs", "show", str(job_id)).stdout
    for text in (log, page):
        assert f'{HARMLESS}  "\\u202e"="\\u202e"' in text
        assert not set(STEER[-1] + "\x1b\r") & set(text)
    assert r"progress   50 %  \x1b[2J \u202e  (attempt 1, " in page


def test_half_a_character_in_a_field_is_escaped_as_well(shop):
    job_id, worker = shop.running()
    shop.log(worker, job_id, ("odd", r'{"half":"\ud800"}'))
    result = shop.run("jobs", "log", str(job_id))
    assert result.exit_code == 0
    assert result.stdout.endswith('odd  half="\\ud800"\n')


def test_a_message_of_several_lines_cannot_pass_for_several_messages(shop):
    job_id, worker = shop.running()
    shop.log(worker, job_id, ("first\n2026-03-01 09:00:00Z        1  forged", ""))
    lines = shop.run("jobs", "log", str(job_id)).stdout.splitlines()
    assert lines[1:] == [
        "2026-03-01 09:00:00Z        1  first",
        "                               2026-03-01 09:00:00Z        1  forged",
    ]


def test_a_long_line_is_folded_on_a_terminal_and_whole_in_a_pipe(shop):
    job_id, worker = shop.running()
    shop.log(worker, job_id, ("stone " + "x" * 4_000, ""))
    assert "x" * 4_000 in shop.run("jobs", "log", str(job_id)).stdout
    page = shop.store.perform_sync(ReadLog(job_id))
    lines = on_terminal(lambda out: job_lines.show_log(out, page.lines))
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("x") == 4_000
    lines = shown(shop, job_id).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith("…")
    assert "".join(lines).count("x") == 120 - len("stone ")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("", ""),
        ("{}", ""),
        ('{"n":1,"ok":true,"none":null}', "n=1 ok=true none=null"),
        ('{"a":"plain","b":"","c":"two words","d":"7"}', 'a=plain b="" c="two words" d=7'),
        ('{"list":[1,{"a":"b"}]}', 'list=[1,{"a":"b"}]'),
        ('{"a=b":"c","":"d"}', '"a=b"=c ""=d'),
        ('{"quote":"say \\"x\\"\\n"}', r'quote="say \"x\"\n"'),
        ('{"word":"größe"}', 'word="größe"'),
        ("no JSON", "no JSON"),
        ("[1]", "[1]"),
    ],
)
def test_fields_are_told_as_names_with_their_values(fields, words):
    assert told(fields) == words


def test_fields_that_are_nested_too_deeply_to_be_read_are_shown_as_they_are_stored(shop):
    fields = f'{{"deep":{"[" * 2_000}{"]" * 2_000}}}'
    job_id, worker = shop.running()
    shop.log(worker, job_id, ("dug", fields))
    for command in ("log", "show"):
        assert f"dug  {fields}" in shop.run("jobs", command, str(job_id)).stdout
    (line,) = shop.json("jobs", "log", str(job_id))["lines"]
    assert line["fields"] == fields


@pytest.mark.parametrize(
    ("progress", "seconds", "words"),
    [
        (far(0.5, "grinding"), 3, "50 %  grinding  (attempt 2, 2026-03-01 09:00:00Z, 3 s ago)"),
        (far(0.999), 0.1, "99 %  (attempt 2, 2026-03-01 09:00:00Z, just now)"),
        (far(1.0), -5, "100 %  (attempt 2, 2026-03-01 09:00:00Z, just now)"),
        (far(0.0, "a\nb"), 7_260, "0 %  a b  (attempt 2, 2026-03-01 09:00:00Z, 2 h 1 min ago)"),
        (far(None, "resting"), None, "resting  (attempt 2, 2026-03-01 09:00:00Z)"),
        (far(None), None, "(attempt 2, 2026-03-01 09:00:00Z)"),
    ],
)
def test_progress_is_told_with_its_attempt_and_age(progress, seconds, words):
    now = None if seconds is None else START + timedelta(seconds=seconds)
    assert job_lines.progress_text(progress, now) == words


def test_a_running_job_shows_how_far_it_has_come(shop):
    job_id, worker = shop.running()
    assert "progress" not in shown(shop, job_id)
    shop.say(worker, job_id, 0.5, "grinding")
    shop.clock.advance(timedelta(seconds=3))
    line = "progress   50 %  grinding  (attempt 1, 2026-03-01 09:00:00Z"
    assert f"{line}, 3 s ago)" in shown(shop, job_id)
    shop.report(worker, job_id, Verdict.SUCCEEDED)
    assert f"{line})" in shown(shop, job_id)
    assert shop.json("jobs", "show", str(job_id))["progress"] == {
        "attempt": 1, "fraction": 0.5, "message": "grinding", "at": "2026-03-01T09:00:00Z",
    }  # fmt: skip
    (listed,) = shop.json("jobs", "list")["jobs"]
    assert listed["progress"]["message"] == "grinding"


def test_a_job_shows_its_log_or_the_end_of_it_and_where_the_rest_is(shop, logged):
    page = shown(shop, logged)
    assert page.endswith(
        '\n\nLog\n  2026-03-01 09:00:00Z  attempt 1  copied  rows=12 file="a b"\n'
        "  2026-03-01 09:00:00Z  attempt 1  done\n"
        "  2026-03-01 09:00:45Z  attempt 2  again"
    )
    job_id, worker = shop.running()
    shop.log(worker, job_id, *[(f"stone {number}", "") for number in range(30)])
    page = shop.run("jobs", "show", str(job_id)).stdout
    assert "\n\nThe last 20 lines of the log\n" in page
    assert page.endswith(f"  The whole log: tidemill jobs log {job_id}\n")
    assert page.count("stone ") == 20
    assert "Log" not in shop.run("jobs", "show", str(shop.enqueue())).stdout
