"""What the doctor says about queues, wire names, stuck jobs, dead letters and workers."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.doctor.facts import (
    HOUR,
    LEASE,
    MINUTE,
    NOW,
    SECOND,
    backlog,
    force,
    queue,
    stuck,
    stuck_job,
    told,
    worker,
)

from tidemill.doctor.backlog import judge_backlog
from tidemill.doctor.dead_letters import judge_dead_letters
from tidemill.doctor.names import judge_names
from tidemill.doctor.stuck import judge_stuck
from tidemill.doctor.workers import judge_workers
from tidemill.values.doctor import DeadLetter, DeadLetters, Result, StuckJobs, Waiting, WaitingName
from tidemill.values.states import JobState


def name(wire_name, count=1, queue_name="default", waiting=Waiting.READY):
    return WaitingName(queue_name, wire_name, waiting, count)


def test_a_queue_without_a_worker_is_a_problem_with_the_way_to_serve_it():
    (found,) = judge_backlog(backlog(queue("mail", ready=2, due=1, age=3 * HOUR)), force(worker()))
    assert found.result is Result.PROBLEM
    assert found.found == 'No live worker serves "mail" (3 jobs, the oldest for 3 h).'
    assert "--queues mail" in found.advice


def test_a_queue_whose_only_worker_lapsed_is_served_by_nobody():
    lapsed = worker(lapsed=True, queues=("mail",))
    assert told(judge_backlog(backlog(queue("mail")), force(worker(), lapsed)))


def test_nobody_can_say_who_serves_a_queue_when_not_every_worker_was_seen():
    assert told(judge_backlog(backlog(queue("mail")), force(worker(), more=True))) == []


def test_a_paused_queue_with_work_is_a_warning_and_not_called_unserved():
    (found,) = judge_backlog(backlog(queue("mail", paused=True)), force(worker()))
    assert (found.result, found.found) == (
        Result.WARNING, 'Paused, with work to do: "mail" (1 job, the oldest for 1 s).',
    )  # fmt: skip
    assert found.advice.endswith("tidemill queues resume mail")


@pytest.mark.parametrize(("age", "warned"), [(4 * MINUTE, False), (5 * MINUTE, True)])
def test_work_that_waits_long_in_a_served_queue_is_a_warning(age, warned):
    findings = judge_backlog(backlog(queue(age=age)), force(worker()))
    assert [each.result is Result.WARNING for each in findings] == [warned]


def test_many_unserved_queues_are_one_finding_of_bounded_length():
    many = [queue(f"q{n}") for n in range(200)]
    ((_, _, found),) = told(judge_backlog(backlog(*many), force(worker())))
    assert "197 more" in found
    assert len(found) < 300


def test_names_that_a_worker_of_their_queue_knows_are_well():
    assert told(judge_names([name("orders.capture")], force(worker()), None)) == []
    every = worker(wire_names=None)
    assert told(judge_names([name("anything")], force(every), None)) == []


def test_a_name_that_only_workers_of_other_queues_know_is_a_problem():
    elsewhere = worker(queues=("mail",), wire_names=frozenset({"mail.send"}))
    waiting = [name("mail.send", 4), name("mail.send", 2, waiting=Waiting.HELD)]
    found = judge_names(waiting, force(worker(), elsewhere), None)
    assert told(found) == [
        ("wire names", "problem", 'No live worker of its queue knows "mail.send" (6 jobs).')
    ]


def test_a_name_in_a_queue_that_nobody_serves_is_left_to_the_finding_about_the_queue():
    assert told(judge_names([name("x", queue_name="mail")], force(worker()), None)) == []


def test_an_application_that_declares_the_unknown_name_says_that_its_workers_are_old():
    found = judge_names([name("orders.new")], force(worker()), frozenset({"orders.new"}))
    assert [each.result for each in found] == [Result.PROBLEM, Result.WARNING]
    assert '"orders.new": its workers are older' in found[0].advice
    assert found[1].found == 'The application declares "orders.new", which no live worker knows.'


def test_a_waiting_name_that_the_application_does_not_declare_is_a_warning():
    found = judge_names([name("orders.capture")], force(worker()), frozenset())
    assert told(found) == [
        ("wire names", "warning", 'The application does not declare "orders.capture" (1 job).')
    ]


def test_nothing_stuck_is_well():
    assert told(judge_stuck(stuck())) == []


@pytest.mark.parametrize(
    ("kind", "result", "says"),
    [
        ("abandoned", "problem", "2 jobs have no live worker, and no sweep has found them: "),
        ("overdue", "warning", "2 jobs have been running since their timeout ended: "),
        ("unsettled", "warning", "2 jobs have succeeded in a transaction of their handler"),
    ],
)
def test_each_kind_of_stuck_job_is_told_with_its_ids(kind, result, says):
    ((_, how, found),) = told(judge_stuck(stuck(**{kind: (stuck_job(1), stuck_job(2, None))})))
    assert how == result
    assert found.startswith(says)
    assert "00000001 (orders.capture, for 1 h) and " in found
    assert "00000002 (orders.capture)." in found


def test_more_stuck_jobs_than_are_shown_are_counted():
    work = replace(stuck(), abandoned=StuckJobs((stuck_job(),), 7))
    ((_, _, found),) = told(judge_stuck(work))
    assert found.startswith("7 jobs have no live worker")
    assert found.endswith("and 6 more.")


def letters(age, dead=12, quarantined=0):
    group = DeadLetter(JobState.DEAD, "orders.capture", "poison", 12, NOW - age)
    return DeadLetters(NOW, (group,), 1, dead, quarantined, NOW - age, newest=100_000)


def test_dead_letters_of_the_last_day_are_a_warning_and_older_ones_are_only_told():
    (found,) = judge_dead_letters(letters(MINUTE, quarantined=1))
    assert found.result is Result.WARNING
    assert found.found == (
        "12 dead jobs and 1 quarantined job among the newest 100,000: "
        '12 × "orders.capture" dead (poison), last 1 min ago.'
    )
    (found,) = judge_dead_letters(letters(timedelta(days=2)))
    assert found.result is Result.OK
    assert "12 dead jobs" in found.found


def test_a_death_of_today_in_a_small_group_is_a_warning_and_every_group_is_counted():
    old = letters(timedelta(days=2)).groups * 5
    found = DeadLetters(NOW, old, 8, 63, 0, NOW - MINUTE, newest=100_000)
    (finding,) = judge_dead_letters(found)
    assert finding.result is Result.WARNING
    assert finding.found.endswith("; and 5 more. The last ended 1 min ago.")
    assert finding.found.count("; ") == 3


def test_no_dead_letters_are_told_with_how_far_it_looked():
    (found,) = judge_dead_letters(DeadLetters(NOW, (), 0, 0, 0, None, newest=100_000))
    assert (found.result, found.found) == (
        Result.OK, "None of the newest 100,000 jobs is dead or quarantined.",
    )  # fmt: skip


def test_live_workers_are_counted_with_their_hosts_and_slots():
    (found,) = judge_workers(force(worker(), worker(host="mill-2")), work_waits=True)
    assert found.found == "2 workers live on 2 hosts: 6 of 20 slots in use."


@pytest.mark.parametrize(("work_waits", "result"), [(True, "problem"), (False, "warning")])
def test_no_live_worker_is_a_problem_when_work_waits(work_waits, result):
    ((_, how, found),) = told(judge_workers(force(), work_waits=work_waits))
    assert (how, found) == (result, "No worker is live, so no job runs.")


@pytest.mark.parametrize(("beaten", "late"), [(LEASE * 2 / 3, False), (41 * SECOND, True)])
def test_a_heartbeat_that_is_two_thirds_of_the_lease_old_is_late(beaten, late):
    findings = told(judge_workers(force(worker(beaten=beaten)), work_waits=False))
    assert [found for _, _, found in findings] == [
        "The heartbeat of pid 42 on mill-1 (last 41 s ago, lease 1 min) is late."
    ] * late


def test_workers_that_lapsed_lately_are_named():
    findings = told(
        judge_workers(force(worker(), worker(beaten=6 * MINUTE, lapsed=True)), work_waits=False)
    )
    assert findings == [
        ("workers", "warning",
         "1 worker lapsed without a goodbye: pid 42 on mill-1 (5 min ago)."),
    ]  # fmt: skip


def test_live_workers_of_different_versions_are_a_warning():
    ((_, _, found),) = told(judge_workers(force(worker(), worker(version="2")), work_waits=False))
    assert found == "Live workers run different versions of Tidemill: 1 and 2."
