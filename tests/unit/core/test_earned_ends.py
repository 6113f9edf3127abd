"""Ends that a search earns: a target, no progress, time of trials; all by committed facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core import results as in_results
from dispatcher.core.model import EndReason, Phase
from dispatcher.store.values import number_of
from tests.support.scene import Scene, of_kind


def results(scene: Scene, *values: str) -> list[a.Action]:
    """Trials that end one after another with these results; the actions after the last one."""
    out: list[a.Action] = []
    for value in values:
        (number,) = scene.state.open
        scene.propose(number)
        scene.run(number, value)
        out = scene.deliver(number)
    return out


@pytest.mark.parametrize(
    "maximize, values, reason",
    [
        (True, ("0.5", "0.95"), "the target 0.95 is reached by trial 1: 0.95"),
        (True, ("0.5", '{"default": 0.97, "loss": 3}'), "the target 0.95 is reached by trial 1"),
        (False, ("2", "0.9"), "the target 0.95 is reached by trial 1: 0.9"),
    ],
)
def test_a_target_that_is_reached_completes_the_experiment(
    maximize: bool, values: tuple[str, ...], reason: str
) -> None:
    """Mutations: the direction is not looked at; the target itself is not good enough."""
    scene = Scene(slots=1, maximize=maximize, target=0.95)
    results(scene, *values[:-1])
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(results(scene, values[-1]), a.Finish)
    assert finish.phase is Phase.COMPLETED
    assert finish.reason.startswith(reason)
    scene.assert_replays()


def test_what_runs_when_the_target_is_reached_may_finish() -> None:
    scene = Scene(slots=2, maximize=True, target=0.9)
    scene.propose(0)
    scene.propose(1)
    scene.run(0, "0.95")
    assert scene.state.phase is Phase.DRAINING
    assert not of_kind(scene.deliver(0), a.OpenRequest)
    scene.run(1, "0.1")
    (finish,) = of_kind(scene.deliver(1), a.Finish)
    assert finish == a.Finish(Phase.COMPLETED, "the target 0.9 is reached by trial 0: 0.95")


def test_a_result_of_a_process_that_fell_afterwards_counts_as_everywhere() -> None:
    scene = Scene(slots=1, maximize=True, target=0.9)
    scene.propose(0)
    scene.started(0)
    scene.final(0, "0.95")
    assert scene.state.phase is Phase.RUNNING, "not before the attempt has ended"
    scene.exit(0, EndReason.FAILED)
    assert scene.state.phase is Phase.DRAINING


def test_no_progress_counts_trials_with_a_result_and_begins_anew_with_a_better_one() -> None:
    """Mutations: an equal result is progress; the count goes on after a better one."""
    scene = Scene(slots=1, maximize=True, patience=2, trial_retries=0)
    results(scene, "0.5", "0.4", "0.6", "0.6")
    assert scene.state.phase is Phase.RUNNING
    (number,) = scene.state.open
    scene.propose(number)
    scene.started(number)
    scene.exit(number, EndReason.FAILED)  # without a result: it says nothing
    scene.deliver(number)
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(results(scene, "0.1"), a.Finish)
    assert finish.phase is Phase.COMPLETED
    assert finish.reason == "no progress in 2 trials: the best is 0.6, of trial 2"


def test_small_steps_are_progress_once_they_add_up() -> None:
    """Mutation: each is measured against the best, which moves along with them."""
    scene = Scene(slots=1, maximize=False, patience=3, least_progress=0.25)
    results(scene, "1.0", "0.875", "0.75", "0.625", "0.5", "0.4375")
    assert (scene.state.progress.mark, scene.state.progress.since_mark) == (0.5, 1)
    (finish,) = of_kind(results(scene, "0.375", "0.3125"), a.Finish)
    assert finish.reason == "no progress in 3 trials: the best is 0.3125, of trial 7"


def test_a_resume_decides_the_same_and_a_raised_target_goes_on() -> None:
    scene = Scene(slots=1, maximize=True, target=0.9)
    results(scene, "0.95")
    (again,) = of_kind(scene.say(e.HeadStarted(2)), a.Finish)
    assert again == a.Finish(Phase.COMPLETED, "the target 0.9 is reached by trial 0: 0.95")
    scene.say(e.HeadStarted(3, replace(scene.settings, target=0.99)))
    assert scene.state.phase is Phase.RUNNING
    scene.assert_replays()


def test_time_of_trials_is_that_of_all_slots_and_ends_what_runs() -> None:
    """Mutations: only attempts that have ended are counted; the time of one slot is."""
    scene = Scene(slots=2, maximize=True, most_trial_s=100.0)
    scene.propose(0)
    scene.propose(1)  # a second later
    begun = scene.now - 1.0
    scene.wait_until(begun + 50.4)
    assert scene.state.phase is Phase.RUNNING
    scene.tick()
    assert scene.now == begun + 50.5
    assert scene.state.phase is Phase.DRAINING
    assert scene.state.phase_reason == "all trials together have taken 100 s (trialTime)"
    scene.assert_replays()


def test_the_time_in_which_nobody_led_is_nobodys() -> None:
    scene = Scene(slots=1, maximize=True, most_trial_s=100.0)
    scene.propose(0)
    scene.say(e.Tick(), after=60.0)
    scene.say(e.HeadStarted(2), after=5000.0)
    assert scene.state.phase is Phase.RUNNING
    assert scene.state.progress.spent_s == 60.0
    scene.assert_replays()


def test_off_by_default_so_that_an_older_journal_is_replayed_as_it_was() -> None:
    scene = Scene(slots=1)
    results(scene, *["0.5"] * 50)
    assert scene.state.phase is Phase.RUNNING
    assert scene.state.progress.best is None


@pytest.mark.parametrize(
    "text", ["0.5", "7", '{"default": 2, "loss": 1}', '{"loss": 1}', '"fast"', "true", "null",
             "[1]", '{"default": true}', "NaN", "-Infinity", "1e999", "9" * 400,
             '{"default": 1e999}', '{"default": ' + "9" * 400 + "}", "[" * 9999]
)  # fmt: skip
def test_the_number_in_a_result_is_the_one_that_lists_are_sorted_by(text: str) -> None:
    assert in_results.number_in(text) == number_of(text)


def test_a_target_of_another_objective_is_reached_by_that_number() -> None:
    """Mutation: ``default`` is looked at, which reaches 5 at once."""
    scene = Scene(slots=1, maximize=False, target=5.0, end_objective="size")
    results(scene, '{"default": 1, "size": 9}', "2")
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(results(scene, '{"default": 7, "size": 4}'), a.Finish)
    assert finish.reason == "the target 5 of 'size' is reached by trial 2: 4"
    scene.assert_replays()


@pytest.mark.parametrize("bound", [{"at_most": {"size": 4.0}}, {"at_least": {"size": 20.0}}])
def test_a_result_beyond_a_bound_reaches_no_target_and_is_no_progress(bound: Any) -> None:
    """Mutation: a search ends with a result that ``best`` leaves out."""
    scene = Scene(slots=1, maximize=True, target=0.9, patience=3, **bound)
    results(scene, '{"default": 0.95, "size": 9}', '{"default": 0.99}')
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(results(scene, '{"default": 0.97, "size": 9}'), a.Finish)
    assert finish.reason == "no progress in 3 trials: no result keeps the bounds"
    scene.assert_replays()


def test_another_objective_is_counted_anew() -> None:
    """Mutation: the best of one objective reaches the target of another one."""
    scene = Scene(slots=1, maximize=True, patience=3)
    results(scene, '{"default": 0.5, "size": 9}', '{"default": 0.4, "size": 8}')
    other = replace(
        scene.state.settings, end_objective="size", maximize=False, target=1.0, patience=2
    )
    scene.say(e.SettingsUpdated(other))
    assert scene.state.phase is Phase.RUNNING
    results(scene, '{"default": 0.3, "size": 7}', '{"default": 0.3, "size": 6}')
    assert scene.state.phase is Phase.RUNNING
    scene.assert_replays()
