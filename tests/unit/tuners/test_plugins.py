"""Tuners and assessors of other packages, by the names that they register."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dispatcher.experiment import ExperimentFileErrors
from dispatcher.experiment.loader import build_experiment
from dispatcher.tuner_host import load
from dispatcher.tuner_host.config import TunerHostConfig
from trial_runtime.endpoint import Endpoint
from tuners import TunerArgumentError
from tuners.builtin import builtin_assessor, builtin_tuner, make_assessor, make_builtin
from tuners.catalogue import describe, everything

CODE = '''
from tuners import Assessor, Tuner

class AnnealingTuner(Tuner):
    """Simulated annealing.

    Kirkpatrick, Gelatt, Vecchi: Optimization by Simulated Annealing, Science 220, 1983.

    Args:
        heat: to begin with.
    """

    def __init__(self, heat: float = 1.0, optimize_mode: str = "maximize", seed: int = 0) -> None:
        self.heat, self.mode, self.seed = heat, optimize_mode, seed

    def generate_parameters(self, parameter_id, **kwargs):
        return {}

    def receive_trial_result(self, *args, **kwargs):
        pass

class Patience(Assessor):
    """Never stops anybody."""

    def assess_trial(self, trial_job_id, trial_history):
        return True

number = 7
'''

ENTRIES = """\
[bequeath.tuners]
Annealing = annealing_of_others:AnnealingTuner
Gone = module_that_is_gone:Tuner
Number = annealing_of_others:number
PBT = annealing_of_others:AnnealingTuner

[bequeath.assessors]
Patience = annealing_of_others:Patience
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "annealing_of_others.py").write_text(CODE)
    info = tmp_path / "annealing_of_others-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: annealing-of-others\nVersion: 1.2\n"
    )
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "annealing_of_others", raising=False)


@pytest.mark.usefixtures("installed")
def test_a_registered_class_is_as_good_as_a_built_in_one() -> None:
    assert builtin_tuner("annealing").__name__ == "AnnealingTuner"
    assert make_builtin("Annealing", {"heat": 2.0}).heat == 2.0
    assert make_assessor("patience").assess_trial("1", [0]) is True
    with pytest.raises(TunerArgumentError, match=r"takes no argument 'heet'.*Did you mean 'heat'"):
        make_builtin("Annealing", {"heet": 2.0})
    with pytest.raises(TunerArgumentError, match="Did you mean 'Annealing'"):
        builtin_tuner("Anealing")


@pytest.mark.usefixtures("installed")
def test_a_built_in_name_cannot_be_taken() -> None:
    assert builtin_tuner("PBT").__module__ == "tuners.pbt"


@pytest.mark.usefixtures("installed")
def test_what_is_broken_in_a_package_is_said_with_its_name() -> None:
    with pytest.raises(TunerArgumentError, match=r"'Gone' of annealing-of-others 1\.2 cannot be"):
        builtin_tuner("Gone")
    with pytest.raises(TunerArgumentError, match=r"'Number' of annealing-of-others 1\.2 is no tun"):
        builtin_tuner("Number")
    with pytest.raises(TunerArgumentError):
        builtin_assessor("Annealing")


@pytest.mark.usefixtures("installed")
def test_it_is_listed_and_has_a_page() -> None:
    listed = {one.name: one.origin for one in everything()}
    assert listed["Annealing"] == "annealing-of-others 1.2"
    assert listed["Random"] == "bequeath"
    page = describe("Annealing")
    assert page.paper.startswith("Kirkpatrick")
    heat = page.arguments[0]
    assert (heat.name, heat.type, heat.default, heat.text) == (
        "heat",
        "number",
        "1.0",
        "to begin with.",
    )


def experiment(folder: Path, **keys: object) -> dict[str, object]:
    return {
        "tuner": {"name": "annealing", "classArgs": {"heat": 3}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trialCodeDirectory": str(folder),
        "experimentWorkingDirectory": str(folder / "kept"),
        **keys,
    }


@pytest.mark.usefixtures("installed")
def test_a_file_may_name_it_and_the_host_builds_it(tmp_path: Path) -> None:
    config = build_experiment(experiment(tmp_path, assessor={"name": "patience"}))
    told = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        builtin=config.tuner.name or "",
        class_args=config.tuner.class_args,
        seed=9,
        optimize_mode="minimize",
    )
    tuner = load.build(told).tuner
    assert (tuner.heat, tuner.mode, tuner.seed) == (3, "minimize", 9)
    with pytest.raises(ExperimentFileErrors) as refused:
        build_experiment(experiment(tmp_path, tuner={"name": "Anealing"}))
    assert "did you mean 'Annealing'" in refused.value.errors[0].message


def test_an_argument_of_the_file_comes_before_the_experiments_sense_and_seed() -> None:
    told = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        builtin="PBT",
        class_args={"seed": 5, "optimizeMode": "maximize"},
        seed=9,
        optimize_mode="minimize",
    )
    tuner = load.build(told).tuner
    assert (tuner.optimize_mode, tuner.seed) == ("maximize", 5)
