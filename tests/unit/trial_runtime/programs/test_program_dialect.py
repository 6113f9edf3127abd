"""Surroundings of a program: its arguments, variables and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, CannotStart, Share
from trial_runtime.agent.config import AgentConfig, MetricsSpec, ProgramSpec, TrialSpec
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.agent.runners.trial_dialect import TrialDialect
from trial_runtime.endpoint import Endpoint
from trial_runtime.session_file import SESSION_VERSION, SessionFile

PARAMETERS = {"lr": 0.5, "units": 16.0, "layer": {"_name": "conv", "size": 3}, "note": "a b"}


def dialect(program: ProgramSpec, **environment: str) -> TrialDialect:
    spec = TrialSpec("/code", "train", environment=environment, program=program)
    return dialect_of(
        AgentConfig("w", 1, Endpoint("ipc://none"), 1, "/run", "/exp", spec, "/weights")
    )


def attempt(folder: Path, parameters: Any = PARAMETERS, **session: Any) -> Attempt:
    text = json.dumps(parameters)
    made = SessionFile(SESSION_VERSION, "", "", 3, 2, str(folder), text, **session)
    return Attempt(facts.StartAttempt(LOCAL, 3, 2, "{}"), made, "")


def variables(program: ProgramSpec, started: Attempt, **environment: str) -> dict[str, str]:
    surroundings: dict[str, str] = dict(environment)
    dialect(program, **environment).furnish(started, surroundings)
    return surroundings


def test_all_parameters_may_be_arguments(tmp_path: Path) -> None:
    made = dialect(ProgramSpec(parameters=("arguments",)))
    wanted = ["--lr=0.5", "--units=16", "--layer=conv", "--note=a b", "--size=3"]
    assert made.arguments(attempt(tmp_path)) == wanted
    assert dialect(ProgramSpec(parameters=("file",))).arguments(attempt(tmp_path)) == []
    with pytest.raises(CannotStart, match="have no names"):
        made.arguments(attempt(tmp_path, [1, 2]))


def test_it_knows_its_number_and_a_folder_of_its_own(tmp_path: Path) -> None:
    found = variables(ProgramSpec(), attempt(tmp_path))
    folder = str(tmp_path / "work")
    assert found == {
        "BEQUEATH_TRIAL": "3",
        "BEQUEATH_ATTEMPT_NUMBER": "2",
        "BEQUEATH_TRIAL_FOLDER": folder,
    }
    assert Path(folder).is_dir()
    own = str(tmp_path / "work.rank1")
    started = attempt(tmp_path, work_folder=own)
    assert variables(ProgramSpec(), started)["BEQUEATH_TRIAL_FOLDER"] == own


def test_parameters_may_be_variables(tmp_path: Path) -> None:
    parameters = {"num-layers": 2, "flag": True}
    found = variables(ProgramSpec(parameters=("environment",)), attempt(tmp_path, parameters))
    assert found["BEQUEATH_PARAMETER_num_layers"] == "2"
    assert found["BEQUEATH_PARAMETER_flag"] == "true"


def test_parameters_may_lie_in_a_file(tmp_path: Path) -> None:
    found = variables(ProgramSpec(parameters=("file",)), attempt(tmp_path))
    assert json.loads(Path(found["BEQUEATH_PARAMETERS"]).read_text()) == PARAMETERS


def test_only_those_that_a_command_names_are_its_variables(tmp_path: Path) -> None:
    program = ProgramSpec(templates=("lr", "depth"), optional=("size", "depth"))
    found = variables(program, attempt(tmp_path), LR="at ${trialParameters.lr}", PLAIN="x")
    assert found["BEQUEATH_PARAMETER_lr"] == "0.5"
    assert found["BEQUEATH_PARAMETER_depth"] == "", "of a branch that was not chosen"
    assert "BEQUEATH_PARAMETER_note" not in found
    assert (found["LR"], found["PLAIN"]) == ("at 0.5", "x")


def test_a_parameter_that_is_not_there_keeps_it_from_starting(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"no such parameter: there are lr, units, layer"):
        variables(ProgramSpec(templates=("lrr",)), attempt(tmp_path))


@pytest.mark.parametrize(
    "value, why", [("x" * (128 << 10), "longer than the 131,072 bytes"), ("a\0b", "NUL")]
)
def test_what_no_argument_can_be_is_named(tmp_path: Path, value: str, why: str) -> None:
    """Mutation: the system's own error, which names no parameter."""
    started = attempt(tmp_path, {"big": value})
    with pytest.raises(CannotStart, match=f"'big' .*{why}"):
        dialect(ProgramSpec(parameters=("arguments",))).arguments(started)
    with pytest.raises(CannotStart, match="'big'"):
        variables(ProgramSpec(parameters=("environment",)), started)
    assert "BEQUEATH_PARAMETERS" in variables(ProgramSpec(parameters=("file",)), started)


def test_hypertune_finds_its_file_and_each_node_its_own(tmp_path: Path) -> None:
    program = ProgramSpec(metrics=MetricsSpec("acc", hypertune=True))
    found = variables(program, attempt(tmp_path))
    path = str(tmp_path / "hypertune" / "output.metrics")
    assert found["CLOUD_ML_HP_METRIC_FILE"] == found["BEQUEATH_METRICS_FILE"] == path
    assert found["CLOUD_ML_TRIAL_ID"] == "3"
    assert Path(path).parent.is_dir()
    second = attempt(tmp_path)
    second.share = Share({"RANK": "1"})
    assert variables(program, second)["CLOUD_ML_HP_METRIC_FILE"] == f"{path}.rank1"


def test_a_file_lies_in_its_own_working_directory(tmp_path: Path) -> None:
    program = ProgramSpec(metrics=MetricsSpec("acc", file="out/m.log"))
    own = tmp_path / "work"
    found = variables(program, attempt(tmp_path, work_folder=str(own)))
    assert found["BEQUEATH_METRICS_FILE"] == str(own / "out" / "m.log")
    assert (own / "out").is_dir()
    assert dialect(program).own_names == ("out",)
    assert dialect(ProgramSpec()).own_names == ()


def test_a_folder_that_cannot_be_made_keeps_it_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot lay down what it expects"):
        variables(ProgramSpec(), attempt(tmp_path / "file"))
