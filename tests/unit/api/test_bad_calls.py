"""Bad calls of the Python API: one error each, what to write instead, no frames of ours."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import bequeath as bq
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from tests.unit.api.trial_module import train
from tests.unit.queries.evolution import evolve, make_folder

PACKAGES = tuple(
    str(Path(__file__).parents[3] / name) + "/"
    for name in ("bequeath", "dispatcher", "trial_runtime", "tuners")
)
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
GOOD: dict[str, Any] = {
    "trial": train, "tuner": "Random", "search_space": SPACE, "trial_concurrency": 2,
}  # fmt: skip


async def later(parameters: Any) -> float:
    return 1.0


def pair(x: float, y: float) -> float:
    return x + y


class World:
    """An experiment that has stopped, one that has not begun, and a study."""

    def __init__(self, base: Path) -> None:
        self._base = base

    @property
    def stopped(self) -> bq.Experiment:
        folder = make_folder(self._base / "home")
        evolve(folder, 6)
        values = {"tuner": {"name": "random"}, "trialCommand": "true", "searchSpace": SPACE}
        config = build_experiment({**values, "trialConcurrency": 2}, base_folder=folder)
        (folder / "experiment.json").write_text(to_json(config))
        return bq.Experiment.open(folder)

    @property
    def new(self) -> bq.Experiment:
        return bq.Experiment(**GOOD)

    @property
    def study(self) -> bq.Study:
        return bq.Study(SPACE, tuner="Random", folder=self._base / "study")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "experiments"))
    return World(tmp_path)


Call = Callable[[World], Any]

#: By what is wrong: the call, a part of the sentence, a part of the advice.
CALLS: dict[str, tuple[Call, str, str]] = {
    "nothing given": (lambda w: bq.Experiment(), "", ""),
    "a number for a file": (
        lambda w: bq.Experiment(42), "config must be a mapping, not int 42", "experiment.yml",
    ),
    "a file that is not there": (lambda w: bq.Experiment("none.yml"), "none.yml", ""),
    "a file and a keyword": (
        lambda w: bq.Experiment("none.yml", max_trial_number=3),
        "'max_trial_number' cannot be given beside a whole experiment file", "as keywords",
    ),
    "a lambda as trial": (
        lambda w: bq.Experiment(**{**GOOD, "trial": lambda p: 1}), "is a lambda", "'def'",
    ),
    "a call as trial": (
        lambda w: bq.Experiment(**{**GOOD, "trial": train({"x": 1})}),
        "an object of float", "give the function itself",
    ),
    "an async trial": (
        lambda w: bq.Experiment(**{**GOOD, "trial": later}), "an async function", "asyncio.run",
    ),
    "a trial of two arguments": (
        lambda w: bq.Experiment(**{**GOOD, "trial": pair}),
        "takes x, y, and gets one argument", "def pair(parameters)",
    ),
    "a trial without a colon": (
        lambda w: bq.Experiment(**{**GOOD, "trial": "module.train"}), "'module:function'", "",
    ),
    "a trial of no module": (
        lambda w: bq.Experiment(**{**GOOD, "trial": "no_such:train"}), "no_such", "",
    ),
    "an unknown tuner": (
        lambda w: bq.Experiment(**{**GOOD, "tuner": "Randm"}), "Randm", "Random",
    ),
    "a function as tuner": (
        lambda w: bq.Experiment(**{**GOOD, "tuner": train}), "'train' is no class", "MyTuner",
    ),
    "an object as tuner": (
        lambda w: bq.Experiment(**{**GOOD, "tuner": bq.RandomTuner()}),
        "an object of RandomTuner", "give the class itself",
    ),
    "a section of a file as tuner": (
        lambda w: bq.Experiment(**{**GOOD, "tuner": {"name": "PBT"}}),
        "an object of dict", "tuner='PBT', tuner_args=",
    ),
    "a mapping as trial": (
        lambda w: bq.Experiment(**{**GOOD, "trial": {"x": 1}}),
        "an object of dict", "give the function itself",
    ),
    "an unknown argument of a tuner": (
        lambda w: bq.Experiment(**GOOD, tuner_args={"sed": 1}), "sed", "",
    ),
    "arguments that are no mapping": (
        lambda w: bq.Experiment(**GOOD, tuner_args=["seed"]),
        "tuner_args must be a mapping, not list ['seed']", "tuner_args={",
    ),
    "an unknown key": (
        lambda w: bq.Experiment(**GOOD, max_trial_numer=3),
        "max_trial_numer", "did you mean 'max_trial_number'",
    ),
    "a space that is a list": (
        lambda w: bq.Experiment(**{**GOOD, "search_space": [1]}),
        "'search_space' must be", "bq.uniform(0, 1)",
    ),
    "a parameter that is a pair": (
        lambda w: bq.Experiment(**{**GOOD, "search_space": {"x": (0, 1)}}), "x", "",
    ),
    "a parameter that is a set": (
        lambda w: bq.Experiment(**{**GOOD, "search_space": {"x": {1, 2}}}),
        "holds 'x', which must be a JSON value, not a set", "",
    ),
    "a space that is a text": (
        lambda w: bq.space(cast("Any", "x")), "cannot be made of the text 'x'", "write space({",
    ),
    "a constraint that is a number": (
        lambda w: bq.space({"x": bq.int(1, 8)}, cast("Any", 3)),
        "cannot be made of the number 3", "write space({",
    ),
    "bounds the wrong way round": (lambda w: bq.uniform(1, 0), "", ""),
    "no options": (lambda w: bq.choice(), "", ""),
    "a logarithm of nothing": (lambda w: bq.loguniform(0, 1), "", ""),
    "a direction that is none": (
        lambda w: bq.Experiment(**GOOD, optimize_mode="best"),
        "'optimize_mode' must be", "minimize",
    ),
    "no slots": (
        lambda w: bq.Experiment(**{**GOOD, "trial_concurrency": 0}),
        "'trial_concurrency' must be", "",
    ),
    "a look before the start": (
        lambda w: w.new.best(), "has not been started", "call run() or start() first",
    ),
    "events before the start": (lambda w: w.new.events(), "has not been started", "start()"),
    "an experiment that is not there": (lambda w: bq.Experiment.open("nope"), "", ""),
    "a trial that is not there": (lambda w: w.stopped.trial(999), "999", ""),
    "a trial that is no number": (lambda w: w.stopped.trial("x"), "whole number", ""),
    "leaders that are none": (
        lambda w: w.stopped.leaders(0), "many must be a whole number from 1, not 0", "5",
    ),
    "trials chosen by a list": (
        lambda w: w.stopped.trials([1]), "not by list [1]", "experiment.trials('value > 0.9')",
    ),
    "trials chosen by nonsense": (lambda w: w.stopped.trials("vlue >"), "", ""),
    "a picture that is none": (lambda w: w.stopped.plot("pie"), "'pie'", "progress"),
    "an operation that is none": (lambda w: w.stopped.perform("wieghts gc"), "wieghts gc", ""),
    "an operation without its trial": (
        lambda w: w.stopped.perform("trial show"), "is about a trial", "trial=",
    ),
    "an argument that is none": (
        lambda w: w.stopped.perform("weights gc", kep=1), "kep", "keep",
    ),
    "parameters that are a list": (
        lambda w: w.stopped.submit([0.5]), "parameters must be a mapping", "{'x': 0.5}",
    ),
    "a wish to what does not run": (
        lambda w: w.stopped.stop(), "is not running", "experiment.start()",
    ),
    "a key that cannot change": (
        lambda w: w.stopped.update("optimize_mode", "minimize"), "optimize_mode", "",
    ),
    "a value that cannot be": (
        lambda w: w.stopped.update("trial_concurrency", "many"), "'trial_concurrency' must be", "",
    ),
    "a callback that is a text": (
        lambda w: w.stopped.run(on_new_best="print"),
        "on_new_best must be a function that takes a trial, not str 'print'", "lambda trial:",
    ),
    "a study of a text": (lambda w: bq.Study("x"), "", ""),
    "a direction of a study": (lambda w: bq.Study(SPACE, optimize="up"), "up", "minimize"),
    "a trial of a study that is none": (lambda w: w.study.tell(99, 1.0), "99", ""),
    "a result that is a text": (lambda w: w.study.tell(w.study.ask(), "good"), "", ""),
    "a parent that is none": (lambda w: w.study.ask(parent=99), "99", ""),
    "no parameters to enqueue": (lambda w: w.study.enqueue([1]), "", "{'x': 0.5}"),
    "nothing to enqueue": (lambda w: w.study.enqueue(None), "mapping, not None", "{'x': 0.5}"),
    "results of nowhere": (lambda w: w.study.warm_start("nowhere.csv"), "nowhere.csv", "give a"),
    "a function that returns nothing": (
        lambda w: w.study.optimize(lambda t: None, 1), "returned None", "return its result",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_is_one_error_with_advice(name: str, world: World) -> None:
    call, sentence, advice = CALLS[name]
    with pytest.raises(bq.BequeathError) as raised:
        call(world)
    error: Any = raised.value
    text = str(error)
    assert sentence in text
    assert advice in text
    assert error.hint or "\n  " in text or re.search(r"must be|needs|did you mean", text)
    assert "bequeath resume" not in text
    frames = [each.filename for each in traceback.extract_tb(error.__traceback__)]
    ours = [each for each in frames if each.startswith(PACKAGES)]
    assert len(ours) <= (1 if name not in OF_SPACES else 3), ours
    assert error.__cause__ is None or error.__suppress_context__


#: Errors of the functions that make parameters, which are short as they are.
OF_SPACES = ("bounds the wrong way round", "no options", "a logarithm of nothing")


def test_there_are_many() -> None:
    assert len(CALLS) >= 30


def test_a_name_that_is_none() -> None:
    with pytest.raises(AttributeError, match="did you mean 'Experiment'"):
        _ = bq.Experimnt  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name, ours",
    [("direction", "optimize='minimize'"), ("storage", "folder="), ("sampler", "tuner='TPE'")],
)
def test_arguments_of_optunas_lead_to_ours(name: str, ours: str) -> None:
    """Python refuses the argument; a note has what is written here."""
    with pytest.raises(TypeError, match=name) as raised:
        bq.Study(**{name: "x"})
    (note,) = raised.value.__notes__
    assert note.startswith(f"write {ours}")


def test_a_users_own_call_that_fails_gets_no_note_of_ours(tmp_path: Path) -> None:
    """Mutation: an error within the trial is taken for one of the study's arguments."""

    def trial(t: bq.StudyTrial) -> float:
        return pair(**{"direction": "x"})

    with bq.Study(SPACE, tuner="Random", folder=tmp_path / "study") as study:
        with pytest.raises(TypeError, match="direction") as raised:
            study.optimize(trial, n_trials=1)
        assert not hasattr(raised.value, "__notes__")
