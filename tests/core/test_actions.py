"""What each operator action makes of a job in each state, and of a queue (clauses B, G, J4, L1)."""

from uuid import UUID

import pytest

from tidemill.core.actions import job_target, queue_target, require_repeat, unchanged
from tidemill.core.cancel import cancelling
from tidemill.core.pause import pausing
from tidemill.core.requeue import requeueing
from tidemill.core.rerun import rerunning
from tidemill.core.run_now import running_now
from tidemill.errors import ActionIdReused
from tidemill.values.ids import ActionId, JobId
from tidemill.values.operators import Effect
from tidemill.values.states import REQUEUEABLE, TERMINAL, JobState

S = JobState
JOB, OTHER = JobId(UUID(int=1)), JobId(UUID(int=2))


@pytest.mark.parametrize("state", [each for each in S if each is not S.AWAITING])
def test_a_cancel_ends_what_waits_asks_what_runs_and_leaves_what_ended(state) -> None:
    result = cancelling(JOB, state)
    if state in TERMINAL:
        assert (result.effect, result.state) == (Effect.UNCHANGED, state)
    elif state is S.RUNNING:
        assert (result.effect, result.state) == (Effect.REQUESTED, S.RUNNING)
    else:
        assert (result.effect, result.state) == (Effect.DONE, S.CANCELLED)


@pytest.mark.parametrize("state", S)
def test_a_requeue_takes_back_what_ended_otherwise_than_well(state) -> None:
    result = requeueing(JOB, state, None)
    done = (Effect.DONE, S.READY) if state in REQUEUEABLE else (Effect.UNCHANGED, state)
    assert (result.effect, result.state) == done


@pytest.mark.parametrize("state", S)
def test_a_requeue_yields_to_whoever_has_its_key(state) -> None:
    result = requeueing(JOB, state, OTHER)
    if state in REQUEUEABLE:
        assert (result.effect, result.state, result.other) == (Effect.KEY_HELD, state, OTHER)
    else:
        assert (result.effect, result.other) == (Effect.UNCHANGED, None)


@pytest.mark.parametrize("state", S)
def test_only_what_is_scheduled_can_be_run_now(state) -> None:
    result = running_now(JOB, state)
    done = (Effect.DONE, S.READY) if state is S.SCHEDULED else (Effect.UNCHANGED, state)
    assert (result.effect, result.state) == done


@pytest.mark.parametrize("state", S)
def test_only_what_ended_can_be_rerun_and_it_stays_as_it_is(state) -> None:
    result = rerunning(JOB, state, OTHER)
    done = (Effect.DONE, OTHER) if state in TERMINAL else (Effect.UNCHANGED, None)
    assert (result.effect, result.other, result.state) == (*done, state)


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_queue_stands_as_it_was_wanted_to(paused, wanted) -> None:
    result = pausing("mail", paused=paused, wanted=wanted)
    assert result.paused is wanted
    assert (result.effect is Effect.UNCHANGED) is (paused is wanted)


ACTION = ActionId(UUID(int=3))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("requeue", [job_target(JOB)]), "cannot name a requeue of job"),
        (("cancel", [job_target(OTHER)]), f"cannot name a cancel of job {OTHER}"),
        (("cancel", [job_target(JOB), job_target(OTHER)]), f"cancel of job {JOB}, job {OTHER}"),
        (("cancel", []), "cancel of nothing"),
        (("cancel", [job_target(JOB)] * 5), "and 2 more"),
        (("pause-queue", [queue_target("mail", paused=True)]), "'mail', to be paused"),
    ],
)
def test_an_action_id_belongs_to_one_action_and_both_are_named(asked, says) -> None:
    done = [unchanged(JOB, S.DEAD)]
    require_repeat(ACTION, ("cancel", [job_target(JOB)]), "cancel", done)
    with pytest.raises(ActionIdReused) as refused:
        require_repeat(ACTION, asked, "cancel", done)
    assert f"belongs to a cancel of job {JOB} and" in str(refused.value)
    assert says in str(refused.value)


def test_to_pause_and_to_resume_a_queue_are_two_actions() -> None:
    done = [pausing("mail", paused=False, wanted=True)]
    pause = ("pause-queue", [queue_target("mail", paused=True)])
    require_repeat(ACTION, pause, "pause-queue", done)
    resume = ("pause-queue", [queue_target("mail", paused=False)])
    with pytest.raises(ActionIdReused, match=r"to be paused and cannot .* to be resumed"):
        require_repeat(ACTION, resume, "pause-queue", done)
