"""`tidemill jobs cancel|requeue|rerun|run-now`: what they change, answer and exit with."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import msgspec
import pytest

from tidemill.shell.identity import new_id


def test_cancel_tells_waiting_running_and_ended_jobs_apart(shop):
    running, worker = shop.enqueue(), shop.worker()
    assert shop.claim(worker) == 1
    ended, waiting, missing = shop.succeeded(), shop.enqueue(), new_id()
    result = shop.run("jobs", "cancel", *map(str, (waiting, running, ended, missing)))
    assert result.stdout.splitlines() == [
        f"{waiting}  done: now cancelled",
        f"{running}  requested: it runs, and its worker is told within about a second",
        f"{ended}  unchanged: it is succeeded; cancel takes jobs that have not ended",
        f"{missing}  not found",
    ]
    assert result.exit_code == 1


def test_an_action_that_all_jobs_took_exits_with_0(shop):
    running, worker = shop.enqueue(), shop.worker()
    assert shop.claim(worker) == 1
    result = shop.run("jobs", "cancel", str(shop.enqueue()), str(running))
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_second_cancel_says_who_has_asked_already(shop):
    running, worker = shop.enqueue(), shop.worker()
    assert shop.claim(worker) == 1
    shop.run("jobs", "cancel", str(running), "--actor", "ada")
    again = shop.run("jobs", "cancel", str(running), "--actor", "grace")
    assert again.exit_code == 0
    assert again.stdout == (
        f"{running}  already requested, by ada: it runs until its handler stops\n"
    )


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("requeue", "it is ready; requeue takes dead, quarantined and cancelled jobs"),
        ("rerun", "it is ready; rerun takes jobs that have ended"),
        ("run-now", "it is ready; run-now takes scheduled jobs"),
    ],
)
def test_what_an_action_does_not_take_is_told_with_what_it_takes(shop, action, says):
    ready = shop.enqueue()
    result = shop.run("jobs", action, str(ready))
    assert (result.exit_code, result.stdout) == (1, f"{ready}  unchanged: {says}\n")


def test_a_requeue_of_a_success_points_to_rerun(shop):
    assert "; `tidemill jobs rerun` makes a new job" in (
        shop.run("jobs", "requeue", str(shop.succeeded())).stdout
    )


def test_requeue_makes_a_dead_job_ready(shop):
    dead = shop.dead()
    assert shop.run("jobs", "requeue", str(dead)).stdout == f"{dead}  done: now ready\n"
    assert shop.state(dead) == "ready"


def test_a_requeue_whose_key_is_taken_names_the_holder(shop):
    first = shop.enqueue(idempotency_key="k")
    shop.run("jobs", "cancel", str(first))
    holder = shop.enqueue(idempotency_key="k")
    result = shop.run("jobs", "requeue", str(first))
    assert result.stdout == f"{first}  unchanged: its idempotency key is held by {holder}\n"
    assert result.exit_code == 1


def test_rerun_makes_a_new_job_and_names_it(shop):
    old = shop.succeeded(payload=b'{"a":1}')
    (result,) = shop.json("jobs", "rerun", str(old))["results"]
    new = shop.json("jobs", "show", result["other"])
    assert (result["job_id"], result["effect"]) == (str(old), "done")
    assert (new["rerun_of"], new["payload"], new["state"]) == (str(old), {"a": 1}, "ready")
    assert "done: enqueued again as " in shop.run("jobs", "rerun", str(old)).stdout


def test_run_now_makes_a_scheduled_job_ready(shop):
    later = shop.enqueue(delay=timedelta(days=1))
    assert shop.run("jobs", "run-now", str(later)).exit_code == 0
    assert shop.state(later) == "ready"


@pytest.mark.parametrize("action", ["cancel", "requeue", "rerun", "run-now"])
def test_results_as_json_have_stable_keys_and_the_same_exit_code(shop, action):
    missing = new_id()
    result = shop.run("jobs", action, str(missing), "--json")
    assert result.exit_code == 1
    assert msgspec.json.decode(result.stdout) == {
        "results": [{"job_id": str(missing), "effect": "not-found", "state": None, "other": None}]
    }


def test_a_job_named_twice_is_acted_on_once(shop):
    waiting = shop.enqueue()
    results = shop.json("jobs", "cancel", str(waiting), str(waiting))["results"]
    assert [result["effect"] for result in results] == ["done"]


def test_the_actor_is_who_is_named_or_the_user(shop, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    first, second = shop.enqueue(), shop.enqueue()
    shop.run("jobs", "cancel", str(first))
    shop.run("jobs", "cancel", str(second), "--actor", "grace")
    assert shop.record(first).cause == "operator:ada"
    assert shop.record(second).cause == "operator:grace"


def test_an_action_without_jobs_is_a_usage_error(shop):
    assert shop.run("jobs", "cancel").exit_code == 2


def test_every_action_is_audited_once(shop):
    shop.run("jobs", "cancel", str(shop.enqueue()), "--actor", "ada")
    with closing(sqlite3.connect(shop.path)) as db:
        assert db.execute("SELECT actor FROM tidemill_audit").fetchall() == [("ada",)]
