"""Files of v1 whose trials inherit, train longer, or are sent by an advisor: real processes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from tests.support.checker import check_store
from tests.support.processes import end_processes_of
from tests.unit.cli.conftest import Shell

FILE = """\
authorName: somebody
experimentName: old
trialConcurrency: {slots}
maxExecDuration: 1h
maxTrialNum: {trials}
trainingServicePlatform: local
searchSpacePath: space.json
useAnnotation: false
multiPhase: false
multiThread: false
{algorithm}trial:
  command: python3 trial.py
  codeDir: .
  gpuNum: 0
"""
SPACE = '{"lr": {"_type": "uniform", "_value": [0.1, 0.9]}}'

Rows = Callable[[str, str, int, int], list[dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Rows]:
    """``run(algorithm, trial, slots, trials)``: what 'nnictl trial ls' would say at the end."""
    folders: list[Path] = []

    def to_the_end(algorithm: str, trial: str, slots: int, trials: int) -> list[dict[str, Any]]:
        file = tmp_path / "old.yml"
        text = textwrap.dedent(algorithm).lstrip()
        file.write_text(FILE.format(algorithm=text, slots=slots, trials=trials))
        (tmp_path / "space.json").write_text(SPACE)
        (tmp_path / "trial.py").write_text(textwrap.dedent(trial))
        config = load_experiment(file)
        kept = {"experiment_working_directory": tmp_path / "kept"}
        folder = create(config.model_copy(update=kept))
        folders.append(folder)
        assert Head(folder).run() is Phase.COMPLETED
        assert check_store(folder / "journal.sqlite") == []
        rows = Shell()("nni", "trial", "ls", folder).json()
        return sorted(rows, key=lambda row: int(row["sequenceId"]))

    yield to_the_end
    for folder in folders:
        end_processes_of(folder)


def parameters(row: dict[str, Any]) -> dict[str, Any]:
    """NNI keeps them as JSON within JSON."""
    return dict(json.loads(row["hyperParameters"][0])["parameters"])


def final(row: dict[str, Any]) -> Any:
    return json.loads(json.loads(row["finalMetricData"][0]["data"]))


def test_members_of_a_population_go_on_from_the_folders_they_are_told(run: Rows) -> None:
    rows = run(
        """
        tuner:
          builtinTunerName: PBTTuner
          classArgs:
            optimize_mode: maximize
            population_size: 2
        """,
        """
        import json, os, nni
        told = nni.get_next_parameter()
        before = os.path.join(told["load_checkpoint_dir"], "epochs.json")
        epochs = json.load(open(before)) if os.path.isfile(before) else 0
        nni.report_final_result({"default": told["lr"], "epochs": epochs + 1})
        os.makedirs(told["save_checkpoint_dir"], exist_ok=True)
        json.dump(epochs + 1, open(os.path.join(told["save_checkpoint_dir"], "epochs.json"), "w"))
        """,
        2,
        6,
    )
    assert [row["status"] for row in rows] == ["SUCCEEDED"] * 6
    saved = {parameters(row)["save_checkpoint_dir"]: final(row)["epochs"] for row in rows}
    assert len(saved) == 6
    for number, row in enumerate(rows):
        own, told = parameters(row)["save_checkpoint_dir"], parameters(row)["load_checkpoint_dir"]
        before = 0 if told == own else saved[told]
        assert final(row)["epochs"] == before + 1
        assert (told == own) == (number < 2)


def test_the_better_half_trains_longer(run: Rows) -> None:
    rows = run(
        """
        advisor:
          builtinAdvisorName: Hyperband
          classArgs:
            R: 4
            eta: 2
            optimize_mode: minimize
        """,
        """
        import nni
        told = nni.get_next_parameter()
        for _ in range(told["TRIAL_BUDGET"]):
            nni.report_intermediate_result(told["lr"])
        nni.report_final_result(told["lr"])
        """,
        2,
        7,
    )
    budgets = [parameters(row)["TRIAL_BUDGET"] for row in rows]
    assert budgets == [1, 1, 1, 1, 2, 2, 4]
    rates = [parameters(row)["lr"] for row in rows]
    assert rates[4:6] == sorted(rates[:4])[:2]
    assert rates[6] == min(rates)


def test_an_advisor_sends_and_ends_trials(run: Rows, tmp_path: Path) -> None:
    """Each trial that gets worse is ended, and one more is sent for it, without being asked."""
    (tmp_path / "strict.py").write_text(
        textwrap.dedent("""
        import json_tricks
        from nni.msg_dispatcher_base import MsgDispatcherBase
        from nni.protocol import CommandType, send
        from nni.utils import MetricType

        class Strict(MsgDispatcherBase):
            def __init__(self, start):
                super().__init__()
                self.next, self.last = start, {}
            def handle_initialize(self, data):
                assert "lr" in data
                send(CommandType.Initialized, "")
            def handle_update_search_space(self, data):
                pass
            def handle_request_trial_jobs(self, data):
                for _ in range(data):
                    self.new("asked")
            def new(self, why):
                told = {"parameter_id": "p%d" % self.next,
                        "parameters": {"n": self.next, "why": why}, "parameter_source": "algorithm"}
                self.next += 1
                send(CommandType.NewTrialJob, json_tricks.dumps(told))
            def handle_report_metric_data(self, data):
                value = json_tricks.loads(data["value"])
                if data["type"] == MetricType.PERIODICAL:
                    if value < self.last.get(data["parameter_id"], value):
                        self.new("instead of " + data["parameter_id"])
                        send(CommandType.KillTrialJob, json_tricks.dumps(data["trial_job_id"]))
                    self.last[data["parameter_id"]] = value
            def handle_trial_end(self, data):
                pass
        """)
    )
    rows = run(
        """
        advisor:
          codeDir: .
          classFileName: strict.py
          className: Strict
          classArgs:
            start: 10
        """,
        """
        import threading, nni
        told = nni.get_next_parameter()
        nni.report_intermediate_result(1)
        if told["n"] == 10:
            nni.report_intermediate_result(0)
            threading.Event().wait(600)  # until it is ended
        nni.report_final_result(told["n"])
        """,
        1,
        3,
    )
    assert [row["status"] for row in rows] == ["EARLY_STOPPED", "SUCCEEDED", "SUCCEEDED"]
    assert [parameters(row) for row in rows] == [
        {"n": 10, "why": "asked"},
        {"n": 11, "why": "instead of p10"},
        {"n": 12, "why": "asked"},
    ]
    assert [final(row) for row in rows[1:]] == [11, 12]


def test_a_population_smaller_than_the_slots_with_callbacks_that_are_never_called(
    run: Rows, tmp_path: Path
) -> None:
    """Several tuners on GitHub are modelled so on one of NNI's own. Mutation: a request whose
    callback came to nothing keeps others from being made."""
    (tmp_path / "evolving.py").write_text(
        textwrap.dedent("""
        import random
        import nni
        from schema import Optional, Schema
        from nni.tuner import Tuner
        from nni.utils import OptimizeMode, extract_scalar_reward

        class Evolving(Tuner):
            def __init__(self, optimize_mode="maximize", population_size=2):
                Schema({Optional("size"): int}).validate({"size": population_size})
                self.mode = OptimizeMode(optimize_mode)
                self.first = [{0: {"lr": 0.5}} for _ in range(population_size)]
                self.population = []
            def update_search_space(self, search_space):
                self.bounds = search_space["lr"]["_value"]
            def generate_parameters(self, parameter_id, **kwargs):
                if self.first:
                    return self.first.pop()
                if not self.population:
                    raise nni.NoMoreTrialError("no more parameters now.")
                return {0: {"lr": random.uniform(*self.bounds)}}
            def generate_multiple_parameters(self, parameter_id_list, **kwargs):
                result = []
                self.send_trial_callback = kwargs["st_callback"]
                for parameter_id in parameter_id_list:
                    try:
                        result.append(self.generate_parameters(parameter_id, **kwargs))
                    except nni.NoMoreTrialError:
                        pass
                return result
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                self.population.append((extract_scalar_reward(value), parameters[0]["lr"]))
        """)
    )
    rows = run(
        """
        tuner:
          codeDir: .
          classFileName: evolving.py
          className: Evolving
          classArgs:
            population_size: 1
        """,
        """
        import nni
        nni.report_final_result({"default": nni.get_next_parameter()["0"]["lr"]})
        """,
        3,
        5,
    )
    assert [row["status"] for row in rows] == ["SUCCEEDED"] * 5
    assert all(final(row)["default"] == parameters(row)["0"]["lr"] for row in rows)
