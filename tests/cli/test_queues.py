"""`tidemill queues list|pause|resume`: what they show, change and exit with."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest


def test_queues_are_listed_with_what_is_to_come(shop):
    shop.enqueue()
    shop.enqueue(delay=timedelta(days=1))
    shop.run("queues", "pause", "slow")
    head, *lines = shop.run("queues", "list").stdout.splitlines()
    assert head.split() == ["QUEUE", "READY", "HELD", "SCHEDULED", "RUNNING"]
    assert [line.split() for line in lines] == [
        ["payments", "open", "1", "0", "1", "0"],
        ["slow", "paused", "0", "0", "0", "0"],
    ]
    assert shop.json("queues", "list") == {
        "queues": [
            {
                "queue": "payments", "paused": False,
                "ready": 1, "held": 0, "scheduled": 1, "running": 0,
            },
            {
                "queue": "slow", "paused": True,
                "ready": 0, "held": 0, "scheduled": 0, "running": 0,
            },
        ]
    }  # fmt: skip


def test_a_store_without_queues_says_so(shop):
    result = shop.run("queues", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No jobs wait, and no queue is paused.\n"


def test_a_paused_queue_gives_nothing_to_a_claim_until_it_is_resumed(shop):
    shop.enqueue()
    worker = shop.worker()
    assert shop.run("queues", "pause", "payments").stdout == "payments  done: now paused\n"
    assert shop.claim(worker) == 0
    assert shop.run("queues", "resume", "payments").stdout == "payments  done: now open\n"
    assert shop.claim(worker) == 1


@pytest.mark.parametrize(("action", "stands"), [("pause", "paused"), ("resume", "open")])
def test_what_is_so_already_is_unchanged_and_exits_with_1(shop, action, stands):
    shop.run("queues", action, "payments")
    result = shop.run("queues", action, "payments", "other")
    assert result.stdout.splitlines()[0] == f"payments  unchanged: it is {stands}"
    assert result.exit_code == 1


def test_results_as_json_have_stable_keys(shop):
    (result,) = shop.json("queues", "pause", "payments", "payments")["results"]
    assert result == {"queue": "payments", "effect": "done", "paused": True}


def test_the_actor_is_kept_for_the_audit(shop):
    shop.run("queues", "pause", "payments", "--actor", "ada")
    with closing(sqlite3.connect(shop.path)) as db:
        assert db.execute("SELECT actor FROM tidemill_audit").fetchall() == [("ada",)]
