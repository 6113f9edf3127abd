"""Code of trials on pages: each block runs as it is printed, with what it leaves to its reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.pages import ROOT, Reader, blocks, python_blocks
from tuners import MorphingEvolutionTuner, SPOSTuner
from tuners.testing import Search

#: A model, and training that lowers its loss; in numpy, so that a trial starts soon.
BUILT = """\
import numpy as np


def build(parameters):
    return {"weights": np.zeros(3)}


def train(model, rate=0.5):
    model["weights"] += rate * (1 - model["weights"])
    return float(((1 - model["weights"]) ** 2).sum())


def train_one_epoch(model):
    return 1 - train(model)


"""


def by_hand(reader: Reader, script: str, parameters: dict[str, Any] | None = None) -> str:
    """What a trial prints that its author runs by hand."""
    reader.file("trial.py", script)
    reader.file("parameters.json", json.dumps(parameters or {}))
    return reader.type("python trial.py", BEQUEATH_PARAMETERS="parameters.json")


def values(reader: Reader) -> dict[int, float]:
    """The results of the newest experiment's trials, by their numbers."""
    listed = json.loads(reader.type("bequeath trial ls --json"))
    return {one["id"]: one["value"] for one in listed["trials"]}


def test_the_readmes_tuner_trial_and_file(reader: Reader) -> None:
    """Together, as an experiment; and from a notebook."""
    tuner, trial, notebook = python_blocks("README.md")
    file, machines = blocks(ROOT / "README.md", "yaml")
    assert "machineList" in machines.text  # is read with all lines of experiment files
    reader.file("tuner.py", tuner)
    reader.file("trial.py", BUILT + trial)
    keys = yaml.safe_load(file.text)
    keys["trainingService"]["preload"] = ["numpy"]  # which takes less time to load
    assert "20 trials: 20 succeeded" in reader.run(keys)
    results = values(reader)
    assert min(results.values()) < results[0] / 10, "children go on where their parents stopped"

    train = "def train(parameters):\n    return parameters['rate']\n"
    head = f"from tuner import BetterOfTwo\n\n\n{train}\n\n"
    reader.file("cells.py", f"{head}{notebook}print(len(experiment.trials()))\n")
    assert reader.type("python cells.py").endswith("20\n")


def test_a_trial_as_a_program(reader: Reader) -> None:
    """By hand, with a parent; and as the command of an experiment, by the line of the page."""
    trial, *_ = python_blocks("docs/trial-authors.md")
    (line,) = blocks(ROOT / "docs/trial-authors.md", "yaml")
    first = by_hand(reader, BUILT + trial, {"epochs": 2})
    assert "final result: 0.8125" in first
    parent = {"epochs": 1, "restore_path": "bequeath-by-hand/weights"}
    assert "final result: 0.953125" in by_hand(reader, BUILT + trial, parent)
    rest = {
        "searchSpace": {"epochs": "choice(2)"},
        "tuner": {"name": "RegularizedEvolution"},
    }
    reader.run(rest, line.text)
    assert values(reader) == {0: 0.8125}


@pytest.mark.torch
def test_weights_with_all_that_training_needs(reader: Reader) -> None:
    _, weights, _, _ = python_blocks("docs/trial-authors.md")
    before = """\
import bequeath as bq
import torch

model, epoch = torch.nn.Linear(2, 1), 3
opt = torch.optim.Adam(model.parameters())
model(torch.ones(2)).sum().backward()
opt.step()
"""
    after = """
state = bq.load_weights(path="bequeath-by-hand/weights")
assert state["epoch"] == 3
assert torch.equal(state["model"]["weight"], model.weight)
torch.optim.Adam(torch.nn.Linear(2, 1).parameters()).load_state_dict(state["optimizer"])
"""
    by_hand(reader, before + weights + after)


def test_a_shared_store(reader: Reader) -> None:
    _, _, store, _ = python_blocks("docs/trial-authors.md")
    before = """\
import bequeath as bq
import numpy as np


def first_state():
    return {"w": np.zeros(2)}


"""
    after = "\nassert (number, store.version) == (2, 2)\n"
    assert "version 2 of omega" in by_hand(reader, before + store + after)


def test_checkpoints(reader: Reader) -> None:
    """The first attempt fails in its third epoch: the second one begins there."""
    _, _, _, loop = python_blocks("docs/trial-authors.md")
    trial = f"""\
import bequeath as bq
import numpy as np

epochs = 4


def fresh():
    return {{"w": np.zeros(1)}}


def fresh_optimizer():
    return {{"steps": np.zeros(1)}}


def train_one_epoch(state):
    if bq.attempt() == 1 and state["epoch"] == 2:
        raise RuntimeError("a broken machine")
    state["model"]["w"] += 10 ** bq.attempt()


{loop}
bq.report_final(float(state["model"]["w"][0]))
"""
    reader.file("trial.py", trial)
    keys = {
        "trialCommand": "python trial.py",
        "searchSpace": {"rate": "uniform(0, 1)"},
        "tuner": {"name": "Random"},
        "trialRetries": 1,
    }
    reader.run(keys)
    assert values(reader) == {0: 10 + 10 + 100 + 100}


@pytest.mark.torch
def test_a_member_of_pbt_keeps_its_state_and_not_its_rate(reader: Reader) -> None:
    state, _, _ = python_blocks("docs/tuners.md")
    before = """\
import bequeath as bq
import torch

parameters = bq.get_parameters()
model = torch.nn.Linear(2, 1)
optimiser = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
"""
    after = """
model(torch.ones(2)).sum().backward()
optimiser.step()
moved = [float(one["momentum_buffer"].sum()) for one in optimiser.state.values()]
bq.save_weights({"model": model.state_dict(), "optimiser": optimiser.state_dict()})
print("momentum", sum(moved), "rate", optimiser.param_groups[0]["lr"])
"""
    first = by_hand(reader, before + state + after, {"lr": 0.5})
    assert "momentum 3.0 rate 0.5" in first
    parent = {"lr": 0.25, "restore_path": "bequeath-by-hand/weights"}
    child = by_hand(reader, before + state + after, parent)
    assert "rate 0.25" in child
    assert float(child.split("momentum ")[1].split()[0]) == pytest.approx(1.9 * 3)


#: A supernet of one block with two options, and what the pages leave to the reader of both forms.
SUPERNET = """\
import random

import bequeath as bq
import torch

parameters = bq.get_parameters()


class Net(torch.nn.ModuleDict):
    def forward(self, pictures, path):
        return self[path["block"]](pictures)


net = model = Net({"wide": torch.nn.Linear(1, 1), "deep": torch.nn.Linear(1, 1)})


def descend(given, labels):
    net.zero_grad()
    ((given - labels) ** 2).mean().backward()
    with torch.no_grad():
        for each in net.parameters():
            if each.grad is not None:
                each -= 0.1 * each.grad


def accuracy(net, path):
    return float(1 - net(torch.ones(1, 1), path).abs().sum())


"""

#: What the page of tuners and the recipe each name in their own way.
OWN = {
    "docs/tuners.md": """\
def batches(epochs):
    return [(torch.ones(4, 1), torch.zeros(4, 1))] * 20 * epochs


step = descend


""",
    "docs/recipes.md": """\
def batches(steps):
    return [(torch.ones(4, 1), torch.zeros(4, 1))] * steps


def step(model, path, batch):
    descend(model(batch[0], path), batch[1])


def evaluate(model, path):
    return accuracy(model, path)


""",
}


@pytest.mark.torch
@pytest.mark.parametrize(
    "page, length", [("docs/tuners.md", {"epochs": 3}), ("docs/recipes.md", {"steps": 60})]
)
def test_a_path_through_a_supernet(reader: Reader, page: str, length: dict[str, int]) -> None:
    """With the parameters that the tuner gives to both kinds of trials."""
    (trial,) = (
        code for code in python_blocks(page) if code.startswith('if "supernet" in parameters')
    )
    script = SUPERNET + OWN[page] + trial
    if "report_final" not in trial:
        script += "    bq.report_final(accuracy)\n"
    tuner = SPOSTuner(population_size=2, supernet=length, seed=1)
    tuner.update_search_space({"block": {"_type": "choice", "_value": ["wide", "deep"]}})
    search = Search(tuner)
    supernet = search.ask(0)
    assert supernet is not None
    assert supernet["supernet"] == length
    assert "weights saved" in by_hand(reader, script, supernet)
    assert search.ask(1) is None
    search.end(0, 0.5)
    path = search.proposed[1] | {"restore_path": "bequeath-by-hand/weights"}
    assert float(by_hand(reader, script, path).split("final result: ")[1]) > 0.9


@pytest.mark.torch
def test_a_child_computes_what_its_parent_computed(reader: Reader) -> None:
    """A network with batch norms, whose blocks the tuner has changed."""
    _, _, trial = python_blocks("docs/tuners.md")
    before = """\
import bequeath as bq
import torch
from torch import nn

parameters = bq.get_parameters()


class Chain(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        width, self.blocks, self.norms = 1, nn.ModuleDict(), nn.ModuleDict()
        for block in blocks:
            key = str(block["id"])
            self.blocks[key] = nn.Conv2d(width, block["width"], block["kernel"], padding="same")
            width = block["width"]
            self.norms[key] = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 3)

    def forward(self, signal):
        for key, block in self.blocks.items():
            signal = torch.relu(self.norms[key](block(signal)))
        return self.head(signal.mean((2, 3)))


def build(blocks):
    return Chain(blocks)


"""
    after = """
pictures = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8)
if state is None:
    for _ in range(3):
        model(torch.randn(16, 1, 8, 8))
bq.save_weights(model.eval())
print("computes", *(float(each) for each in model(pictures)[0]))
"""
    tuner = MorphingEvolutionTuner(
        blocks=[{"width": 4, "kernel": 3}],
        operations=["wider", "deeper"],
        population_size=2,
        sample_size=2,
        seed=3,
    )
    tuner.update_search_space({})
    search = Search(tuner)
    parents = {number: search.ask(number) for number in range(2)}
    for number, value in ((0, 0.5), (1, 0.6)):
        search.end(number, value)
    child = search.ask(2)
    assert child is not None
    parent = parents[int(child["restore_path"].rpartition("/")[2])]
    assert parent is not None
    assert child["steps"]
    assert child["blocks"] != parent["blocks"]

    def computed(parameters: dict[str, Any]) -> list[float]:
        shown = by_hand(reader, before + trial + after, parameters)
        return [float(word) for word in shown.split("computes ")[1].split()]

    first = computed(parent)
    assert computed(child | {"restore_path": "bequeath-by-hand/weights"}) == pytest.approx(
        first, abs=1e-5
    )
