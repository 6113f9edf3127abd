"""Settings of scripts that start experiments by ``nni.experiment``."""

from __future__ import annotations

import json
import os
import runpy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.commands import ROOT
from dispatcher.cli.lazy_group import load
from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.nni.records import job_of
from dispatcher.nni.rows import job
from dispatcher.nni.script import children
from dispatcher.nni.script.experiment import Experiment
from dispatcher.nni.script.script import script_error
from dispatcher.nni.script.settings import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from dispatcher.terminal import formatting
from trial_runtime import nni_shim


def test_attributes_become_the_keys_of_a_file() -> None:
    config = ExperimentConfig("local")
    config.trial_command = "python model.py"
    config.trial_code_directory = Path("code")
    config.max_trial_number = 10
    config.max_trial_duration = None
    config.tuner.name = "TPE"
    config.tuner.class_args["optimize_mode"] = "maximize"
    config.training_service.use_active_gpu = True
    assert config.mapping() == {
        "experimentType": "hpo",
        "trialCommand": "python model.py",
        "trialCodeDirectory": "code",
        "maxTrialNumber": 10,
        "tuner": {"name": "TPE", "classArgs": {"optimize_mode": "maximize"}},
        "trainingService": {"platform": "local", "useActiveGpu": True},
    }
    assert config.search_space is None


def test_sections_may_be_given_whole_and_several_services() -> None:
    machine = RemoteMachineConfig(host="h", user="u", ssh_key_file=Path("key"), python_path="/p")
    config = ExperimentConfig(
        tuner=CustomAlgorithmConfig(class_name="mine.Tuner", class_args={"size": 3}),
        assessor=AlgorithmConfig(name="Medianstop"),
        training_service=[LocalConfig(), RemoteConfig(machine_list=[machine])],
    )
    whole = config.mapping()
    own = {"className": "mine.Tuner", "codeDirectory": ".", "classArgs": {"size": 3}}
    assert whole["tuner"] == own
    assert whole["trainingService"][1]["machineList"] == [
        {"host": "h", "user": "u", "sshKeyFile": "key", "pythonPath": "/p"}
    ]
    assert [
        one["platform"] for one in ExperimentConfig(["local", "dlc"]).mapping()["trainingService"]
    ] == ["local", "dlc"]


def test_passwords_are_not_taken_from_a_script() -> None:
    config = ExperimentConfig("remote")
    config.training_service.machine_list = [RemoteMachineConfig(host="h", password="secret")]
    with pytest.raises(UserError, match="clear text") as refused:
        config.mapping()
    assert "secret" not in str(refused.value)


def test_a_trial_as_a_record(evolved: Path) -> None:
    """And as the row of `nni trial ls`, where parameters and values are texts in texts."""
    handle = ExperimentHandle(evolved)
    for trial in handle.trials():
        record, row = job_of(trial, evolved), job(trial, evolved)
        (parameters,) = record.hyperParameters
        assert parameters.parameters == trial.parameters
        assert [json.loads(text) for text in row["hyperParameters"]] == [asdict(parameters)]
        assert (record.sequenceId, record.trialJobId, record.logPath) == (
            trial.id,
            row["trialJobId"],
            f"{evolved}/trials/{trial.id}",
        )
        for named, at in (("startTime", trial.started_at), ("endTime", trial.ended_at)):
            assert getattr(record, named) == (None if at is None else int(1000 * at))
            assert row.get(named) == (None if at is None else formatting.moment(at))
        assert bool(record.finalMetricData) == (trial.result is not None)
        for metric, text in zip(
            record.finalMetricData, row.get("finalMetricData", ()), strict=True
        ):
            assert (metric.parameterId, text["parameterId"]) == (trial.id, str(trial.id))
            assert metric.timestamp == text["timestamp"] == record.endTime
            assert metric.data == json.loads(json.loads(text["data"])) == trial.result


@pytest.mark.parametrize(
    "typed, parsed",
    [
        ("x.py --name a y.py", "x.py -- --name a y.py"),
        ("--name mine.py x.py -h", "--name mine.py x.py -- -h"),
        ("x.yml --name a.py --json", "x.yml --name a.py --json"),
        ("-- x.py --help", "-- x.py --help"),
    ],
)
def test_what_follows_a_script_is_its_own(typed: str, parsed: str) -> None:
    """Mutations: a value of an option is taken for the script; the table forgets to arrange."""
    command: Any = load("run", ROOT["run"])
    assert command.arranged(typed.split()) == parsed.split()


def test_an_id_is_settled_before_the_start_and_may_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: an id of chance each time; any text is taken for a folder's name."""
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # folders that others have used
    experiment = Experiment("local")
    experiment.config.experiment_name = "lenet test"
    assert experiment.id.startswith("lenet-test-")
    assert experiment.id == experiment.id
    with pytest.raises(UserError, match="has not been started"):
        experiment.resume(8080)
    chosen = Experiment("local", id="no/../such")
    with pytest.raises(UserError, match="cannot be an experiment's id"):
        chosen.start()
    for look in (chosen.get_status, chosen.resume, Experiment(id="none").list_trial_jobs):
        with pytest.raises(ExperimentNotFound):
            look()


def test_an_experiment_is_gone_on_with_in_the_ways_of_all_releases(
    evolved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: an id that a method was given is taken for a port."""
    monkeypatch.setenv("BEQUEATH_HOME", str(evolved.parent))
    ident, begun = evolved.name, []
    monkeypatch.setattr(Experiment, "run", lambda self, **options: begun.append(self.id) or True)
    own = Experiment("local")
    assert own.resume(ident, 8080)
    assert Experiment(id=ident).resume(8080, wait_completion=True)
    assert Experiment.resume(ident, 8080)
    later = Experiment.resume(experiment_id=ident, port=8080, wait_completion=False)
    assert isinstance(later, Experiment)
    assert begun == [ident] * 4
    assert {one.id for one in (own, later, own.view(), Experiment.view(ident, 8080))} == {ident}
    assert len(own.list_trial_jobs()) == 40


def test_a_head_gets_nothing_of_what_a_script_hands_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: the head, and so the trials, find what is meant for scripts."""
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv(nni_shim.PROVIDER, "")
    children.provide_to_children()
    handed = {name: os.environ[name] for name in ("PYTHONPATH", nni_shim.PROVIDER)}
    assert handed["PYTHONPATH"].split(os.pathsep) == ["/mine", nni_shim.folder()]
    assert handed[nni_shim.PROVIDER] == "dispatcher.nni.script.modules"
    with children.withheld_from_children():
        assert os.environ["PYTHONPATH"] == "/mine"
        assert nni_shim.PROVIDER not in os.environ
    assert handed == {name: os.environ[name] for name in handed}


def _raised(file: Path, text: str) -> Exception:
    """What comes out of a script of this text."""
    file.write_text(text)
    try:
        runpy.run_path(str(file), {"Experiment": Experiment})
    except Exception as error:  # noqa: BLE001 - whatever the script raises
        return error
    raise AssertionError("the script raised nothing")


def test_what_a_script_raises_is_not_called_a_fault_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "launch.py"
    told = script_error(_raised(file, "x = 1\nx.missing\n"), file)
    assert told is not None
    assert (told.where, told.exit_code, told.hint) == (str(file), 3, "")
    first, _, *steps, last = told.message.splitlines()
    assert first == "the script ended by an exception"
    assert last == "AttributeError: 'int' object has no attribute 'missing'"
    assert "runpy" not in told.message
    assert f'File "{file}", line 2' in steps[0]


@pytest.mark.parametrize(
    "text", ["import nnicli", "from nnicli import Experiment", "Experiment().start_experiment('x')"]
)
def test_older_clients_of_nni_are_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    file = tmp_path / "launch.py"
    told = script_error(_raised(file, text), file)
    assert told is not None
    assert "bequeath run config.yml" in told.hint


def test_what_our_own_code_raises_stays_a_fault_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "launch.py"
    assert script_error(_raised(file, "Experiment().export_data()"), file) is None
