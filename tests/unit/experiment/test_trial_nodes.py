"""``trialNodes``: which files are refused, and what agents and orders get of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.experiment import ExperimentFileErrors, load_experiment
from dispatcher.platforms.allocations.order import order_of
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

FILE = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialCommand: "true"
trialConcurrency: 4
trialNodes: 3
"""


@pytest.mark.parametrize(
    "more, place, wrong",
    [
        ("", "5:13", "is 3, and workers of 'local' have one node each"),
        ("trainingService: {platform: slurm, slots: 2}", "6:43", "'slots' is 2, and one trial"),
        (
            "trainingService: {platform: slurm, reuseMode: forked}",
            "6:47",
            "'reuseMode: forked' keeps processes of one node",
        ),
        (
            "trainingService:\n- {platform: slurm}\n- {platform: local}",
            "5:13",
            "is 3, and workers of 'local' have one node each",
        ),
        (
            "weightsRoot: s3://weights/x\ntrainingService: {platform: slurm}",
            "6:14",
            "'weightsRoot' is no folder, and the 3 nodes",
        ),
        (
            "trainingService: {platform: ssh, machineList: [{host: a}]}",
            "5:13",
            "is 3, and workers of 'ssh' have one node each",
        ),
        (
            "trainingService: {platform: ray, options: {scheduling_strategy: SPREAD}}",
            "6:65",
            "places one actor, and 'trialNodes' spreads those of a trial",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, more: str, place: str, wrong: str) -> None:
    file = tmp_path / "e.yml"
    file.write_text(f"{FILE}{more}\n")
    with pytest.raises(ExperimentFileErrors) as refused:
        load_experiment(file)
    (error,) = [each for each in refused.value.errors if wrong in each.message]
    assert (error.where or "").endswith(f"e.yml:{place}")


@pytest.mark.parametrize(
    "service", ["{platform: slurm, partion: gpu}", "{platform: not-installed}"]
)
def test_a_platform_that_is_wrong_is_not_taken_for_another(tmp_path: Path, service: str) -> None:
    """Mutation: the workers of this machine are said to have one node."""
    file = tmp_path / "e.yml"
    file.write_text(f"{FILE}trainingService: {service}\n")
    with pytest.raises(ExperimentFileErrors) as refused:
        load_experiment(file)
    assert [each.where for each in refused.value.errors if "trialNodes" in each.message] == []


@pytest.mark.parametrize("nodes", ["0", "257", "two"])
def test_a_number_that_is_none(tmp_path: Path, nodes: str) -> None:
    file = tmp_path / "e.yml"
    file.write_text(FILE.replace("trialNodes: 3", f"trialNodes: {nodes}"))
    with pytest.raises(ExperimentFileErrors, match="trialNodes"):
        load_experiment(file)


def test_a_worker_runs_one_trial_at_a_time(tmp_path: Path) -> None:
    """Mutation: each allocation has as many slots as trials run at once."""
    file = tmp_path / "e.yml"
    file.write_text(
        f"{FILE}trainingService: {{platform: slurm, allocations: 2, headAddress: 127.0.0.1}}\n"
    )
    config = load_experiment(file)
    assert [worker.slots for _, worker in config.workers] == [1, 1]
    assert config.slots == 2


def test_an_order_has_the_nodes_of_its_agent(tmp_path: Path) -> None:
    config = AgentConfig(
        worker="slurm",
        slots=1,
        head=Endpoint("tcp://h:1"),
        epoch=1,
        run_folder="",
        experiment_folder="/e",
        trial=TrialSpec("/code", command="true"),
        weights_root="/w",
        nodes=4,
    )
    order = order_of("a-1", config, tmp_path)
    assert (order.nodes, order.config.nodes) == (4, 4)
