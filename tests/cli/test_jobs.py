"""`tidemill jobs list` and `show`: what people read, and what programs read."""

import io
import sqlite3
from datetime import timedelta
from uuid import UUID

import pytest
from rich.console import Console

from tidemill.cli import exits, job_text
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Verdict
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

NAME = "orders.capture"
RECORD_KEYS = {
    "id", "wire_name", "queue", "priority", "state", "held", "cause", "attempt", "failures",
    "failures_base", "lapses", "lapses_base", "worker", "created_at", "due_at", "started_at",
    "finished_at", "not_after", "timeout_seconds", "retry", "cancel_requested",
    "idempotency_key", "tenant", "rerun_of", "trace_context", "progress", "unreadable",
}  # fmt: skip
DETAIL_KEYS = RECORD_KEYS | {"payload", "output", "tags", "attempts", "stale_reports", "log"}


def printed(width, show) -> list[str]:
    """The lines on a terminal of that width."""
    out = io.StringIO()
    show(Console(file=out, width=width, force_terminal=True, color_system=None, markup=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_list_shows_each_job_on_one_line_newest_first(shop):
    first, second = shop.enqueue(), shop.dead()
    lines = shop.run("jobs", "list").stdout.splitlines()
    assert lines[0].split() == [
        "ID",
        "STATE",
        "ATTEMPT",
        "QUEUE",
        "WIRE",
        "NAME",
        "DUE",
        "FINISHED",
    ]
    assert [line.split()[:5] for line in lines[1:]] == [
        [str(second), "dead", "1", "payments", "orders.capture"],
        [str(first), "ready", "0", "payments", "orders.capture"],
    ]


def test_a_piped_list_has_no_colour_and_cuts_nothing(shop):
    long = "orders." + "x" * 110
    shop.enqueue(wire_name=long)
    text = shop.run("jobs", "list").stdout
    assert long in text
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("width", [80, 100])
def test_a_list_on_a_terminal_keeps_ids_whole_and_lines_within_it(shop, width):
    job_id = shop.enqueue(wire_name="warehouse.recount-" + "x" * 60)
    page = shop.store.perform_sync(ListJobs())
    lines = printed(width, lambda out: job_text.show_list(out, page.jobs))
    assert lines[1].startswith(str(job_id))
    assert max(map(len, lines)) <= width
    assert "".join(lines[1:]).count("x") == 60


def test_a_list_of_80_columns_has_a_whole_job_on_a_line_with_the_instant_that_matters(shop):
    scheduled = shop.enqueue(delay=timedelta(hours=1), wire_name="orders.thumbnail")
    running, worker = shop.enqueue(wire_name=NAME), shop.worker()
    shop.clock.advance(timedelta(seconds=30))
    assert shop.claim(worker) == 1
    shop.clock.advance(timedelta(seconds=30))
    dead = shop.dead()
    page = shop.store.perform_sync(ListJobs())
    lines = printed(80, lambda out: job_text.show_list(out, page.jobs))
    assert [line.split() for line in lines] == [
        ["ID", "STATE", "WHEN", "(UTC)", "WIRE", "NAME"],
        [str(dead), "dead", "03-01", "09:01", NAME],
        [str(running), "running", "03-01", "09:00", NAME],
        [str(scheduled), "scheduled", "03-01", "10:00", "orders.thumbnail"],
    ]


def test_a_limit_beyond_the_page_size_is_told_if_jobs_are_left_out(shop):
    jobs = [NewJob(id=JobId(new_id()), wire_name=NAME) for _ in range(200)]
    shop.store.perform_sync(Enqueue(tuple(jobs)))
    assert shop.run("jobs", "list", "--limit", "5000").stderr == ""
    shop.enqueue()
    told = shop.run("jobs", "list", "--limit", "5000").stderr
    assert told.startswith("This is one page of 200, the most that the store shows at once.\n")
    assert "There are more: --cursor " in told


def test_a_list_can_be_narrowed_by_state_queue_and_wire_name(shop):
    dead, ready = shop.dead(), shop.enqueue(queue="other", wire_name="other.name")

    def ids(*options):
        return [job["id"] for job in shop.json("jobs", "list", *options)["jobs"]]

    assert ids("--state", "dead") == [str(dead)]
    assert ids("--state", "dead", "--state", "ready") == [str(ready), str(dead)]
    assert ids("--state", "dead,ready") == [str(ready), str(dead)]
    assert ids("-n", "1") == [str(ready)]
    assert ids("--queue", "other") == [str(ready)]
    assert ids("--wire-name", "orders.capture") == [str(dead)]
    assert ids("--queue", "nobody") == []


def test_a_list_as_json_has_stable_keys_and_pages_to_its_end(shop):
    wanted = [str(shop.enqueue()) for _ in range(5)][::-1]
    page = shop.json("jobs", "list", "--limit", "2")
    assert set(page) == {"jobs", "next_cursor"}
    assert set(page["jobs"][0]) == RECORD_KEYS
    found = [job["id"] for job in page["jobs"]]
    while page["next_cursor"] is not None:
        page = shop.json("jobs", "list", "--limit", "2", "--cursor", page["next_cursor"])
        found += [job["id"] for job in page["jobs"]]
    assert found == wanted


def test_a_list_says_on_stderr_that_there_is_more_or_nothing(shop):
    assert shop.run("jobs", "list").stderr == "No jobs match.\n"
    for _ in range(2):
        shop.enqueue()
    result = shop.run("jobs", "list", "--limit", "1")
    cursor = shop.json("jobs", "list", "--limit", "1")["next_cursor"]
    assert result.stderr == f"There are more: --cursor {cursor}\n"
    assert cursor not in result.stdout


def test_a_job_whose_row_cannot_be_read_is_shown_with_what_is_wrong_and_what_to_do(shop):
    job_id, worker = shop.enqueue(), shop.worker()
    with sqlite3.connect(shop.path) as connection:
        connection.execute("UPDATE tidemill_jobs SET retry = '{bad'")
    connection.close()
    assert "ready, unreadable" in shop.run("jobs", "list").stdout
    assert shop.claim(worker) == 0
    text = shop.run("jobs", "show", str(job_id)).stdout
    assert "state       quarantined (unreadable)" in text
    assert "unreadable  retry: " in text
    assert "retry = '{bad'" in text
    assert shop.json("jobs", "show", str(job_id))["unreadable"] == ["retry"]
    refused = shop.run("jobs", "requeue", str(job_id), "--actor", "ada")
    assert refused.exit_code == exits.UNCHANGED
    assert f"its row cannot be read; `tidemill jobs show {job_id}`" in refused.stdout


def test_instants_are_iso_8601_in_utc(shop):
    job_id = shop.enqueue(delay=timedelta(hours=1), timeout=timedelta(seconds=1.5))
    job = shop.json("jobs", "show", str(job_id))
    assert job["created_at"] == "2026-03-01T09:00:00Z"
    assert job["due_at"] == "2026-03-01T10:00:00Z"
    assert job["timeout_seconds"] == 1.5
    assert "due        2026-03-01 10:00:00Z" in shop.run("jobs", "show", str(job_id)).stdout


def test_a_job_shows_its_payload_output_tags_and_options(shop):
    job_id = shop.succeeded(
        output=b'{"receipt":12345678901234567890}', payload=b'{"amount":1e22}',
        tags=frozenset({Tag("vip"), Tag("order", "42")}), idempotency_key="k-1", tenant="acme",
    )  # fmt: skip
    text = shop.run("jobs", "show", str(job_id)).stdout
    for part in ('"amount": 1e22', "12345678901234567890", "order=42, vip", "k-1", "acme"):
        assert part in text
    job = shop.json("jobs", "show", str(job_id))
    assert set(job) == DETAIL_KEYS
    assert job["output"] == {"receipt": 12345678901234567890}
    assert job["tags"] == [{"key": "order", "value": "42"}, {"key": "vip", "value": ""}]


def test_a_dead_job_shows_its_cause_and_the_error_of_each_attempt(shop):
    job_id = shop.dead("it \x1b[31mbroke")
    text = shop.run("jobs", "show", str(job_id)).stdout
    assert "state      dead (attempts-exhausted)" in text
    assert r"builtins.ValueError: it \x1b[31mbroke" in text
    assert "\x1b" not in text
    assert "Traceback: line 7" not in text
    assert "Traceback: line 7" in shop.run("jobs", "show", str(job_id), "--traceback").stdout
    (attempt,) = shop.json("jobs", "show", str(job_id))["attempts"]
    assert attempt["verdict"] == "failed"
    assert attempt["error"] == {
        "kind": "builtins.ValueError",
        "message": "it \x1b[31mbroke",
        "detail": "Traceback: line 7",
    }


def test_a_stale_report_shows_both_pairs(shop):
    job_id, first = shop.enqueue(retry=Retry.immediate()), shop.worker()
    assert shop.claim(first) == 1
    shop.lapse()
    second = shop.worker()
    assert shop.claim(second) == 1
    shop.report(first, job_id, Verdict.SUCCEEDED, attempt=1, output=b'"late"')
    text = shop.run("jobs", "show", str(job_id)).stdout
    assert (
        f"attempt 1 lapsed, 2026-03-01 09:00:00Z to 2026-03-01 09:02:00Z\n     worker {first}"
        in text
    )
    assert f"reported by  worker {first}, attempt 1" in text
    assert f"held by      worker {second}, attempt 2, running" in text
    assert "late" not in text
    job = shop.json("jobs", "show", str(job_id))
    (stale,) = job["stale_reports"]
    assert (stale["worker"], stale["attempt"], stale["verdict"]) == (str(first), 1, "succeeded")
    assert stale["holder"] == {"worker": str(second), "attempt": 2, "state": "running"}
    assert [(each["attempt"], each["verdict"]) for each in job["attempts"]] == [(1, "lapsed")]


def test_a_job_fits_a_terminal_of_80_columns(shop):
    job = shop.store.perform_sync(GetJob(shop.dead()))
    lines = printed(80, lambda out: job_text.show_job(out, job, traceback=True, now=shop.clock()))
    assert max(map(len, lines)) <= 80


def test_a_payload_that_is_no_json_is_shown_as_text(shop):
    job_id = shop.enqueue(payload=b"\xffsealed\x00")
    assert r"sealed\x00" in shop.run("jobs", "show", str(job_id)).stdout
    assert shop.json("jobs", "show", str(job_id))["payload"] == "\ufffdsealed\x00"


def test_a_job_that_is_not_there_is_one_sentence_and_exit_code_1(shop):
    missing = new_id()
    result = shop.run("jobs", "show", str(missing))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: There is no job {missing} in this store. "
        "Check the id, and that this is the store it was enqueued in.\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "show", "not-an-id"],
        ["jobs", "list", "--state", "lost"],
        ["jobs", "list", "--limit", "0"],
        ["jobs", "list", "--cursor", "no cursor"],
    ],
)
def test_what_cannot_work_is_exit_code_2(shop, arguments):
    result = shop.run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("Error: ") == 1


def test_ids_in_json_are_strings_that_commands_take_again(shop):
    shop.enqueue()
    (job,) = shop.json("jobs", "list")["jobs"]
    assert shop.json("jobs", "show", job["id"])["id"] == str(UUID(job["id"]))


def test_a_single_attempt_is_told_as_one(shop):
    assert "; at most 1 attempt\n" in shop.run("jobs", "show", str(shop.dead())).stdout
