"""Commands and scripts on pages that speak of an experiment ``digits``, over one that is there."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.folders.status import is_led
from tests.support.pages import ROOT, Reader, block_with, blocks, command_lines, python_blocks
from tests.support.processes import end_processes_of, wait_until
from tests.support.web_server import WebServer

#: The experiment's id on the pages.
ID = "digits-k3x9pa"

TRIAL = """\
import math
import signal

import bequeath as bq
import numpy as np


def train(parameters):
    if bq.trial_id() >= 43:  # while a page is tried
        signal.pause()
    model = {"weights": np.zeros(4)}
    bq.load_weights(into=model)
    model["weights"] += parameters["lr"]
    bq.save_weights(model)
    accuracy = math.exp(-parameters["depth"] * parameters["lr"])
    return {"default": accuracy, "accuracy": accuracy, "latency": parameters["depth"]}
"""

KEYS = {
    "experimentName": "digits",
    "trialFunction": "trial:train",
    "searchSpace": {
        "lr": "loguniform(1e-3, 1e-1)",
        "depth": "int(1, 8)",
        "optimizer": "choice(adam, sgd)",
    },
    "tuner": {
        "name": "RegularizedEvolution",
        "classArgs": {"population_size": 8, "sample_size": 3, "seed": 1},
    },
    "trialConcurrency": 2,
    "maxTrialNumber": 43,
    "trainingService": {"platform": "local", "reuseMode": "forked", "preload": ["numpy"]},
}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader who has run that experiment, with a model that answers as the page has it."""
    one = Reader(tmp_path_factory.mktemp("digits"))
    infer, _ = python_blocks("docs/demo.md")
    one.file("trial.py", f"{TRIAL}\n\n{infer}")
    assert "43 trials: 43 succeeded" in one.run(KEYS)
    yield one
    end_processes_of(experiment_of(one))


def experiment_of(reader: Reader) -> Path:
    """The folder of its only experiment."""
    (folder,) = (each for each in reader.home.iterdir() if each.name.startswith("digits-"))
    return folder


def named(reader: Reader, text: str) -> str:
    """A text of a page with the experiment's own id."""
    return text.replace(ID, experiment_of(reader).name)


def picture() -> bytes:
    """A picture in PNG: 32 × 32, grey, all paper."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff" * 32) * 32)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_a_demo_answers(digits: Reader) -> None:
    (digits.folder / "three.png").write_bytes(picture())
    for command in command_lines(block_with("docs/demo.md", "trial inputs 42")):
        printed = digits.type(command)
        assert "inputs" in command or "7" in printed, command


#: A trial with blocks, as those of the demo's page are.
NETWORK = """\
import trial_runtime
import torch


class Network(torch.nn.Sequential):
    def __init__(self, blocks):
        super().__init__(torch.nn.Flatten(0), torch.nn.Linear(32 * 32, blocks))


"""
TRAIN = """

def infer(model, request):
    assert not model.training
    return {"answer": model(torch.tensor(request["digit"])).tolist()}


def train(parameters):
    model = Network(parameters["blocks"])
    torch.nn.init.ones_(model[1].weight)
    torch.nn.init.constant_(model[1].bias, 3)
    trial_runtime.save_weights(model)
    return 1.0
"""


@pytest.mark.torch
def test_a_demo_makes_its_model(reader: Reader) -> None:
    """Of a picture that is all paper, the network's answer is its bias."""
    _, shown = python_blocks("docs/demo.md")
    reader.file("trial.py", NETWORK + shown + TRAIN)
    keys = {
        "trialFunction": "trial:train",
        "searchSpace": {"blocks": "choice(2)"},
        "tuner": {"name": "RegularizedEvolution"},
    }
    reader.run(keys)
    assert "Draw a digit" in reader.type("bequeath trial inputs 0")
    (reader.folder / "paper.png").write_bytes(picture())
    answer = json.loads(reader.type("bequeath infer 0 --image digit=paper.png --json"))
    assert answer["answer"]["answer"] == [3.0, 3.0]


def test_plots_are_drawn(digits: Reader) -> None:
    for command in command_lines(block_with("docs/plots.md", "plot importance")):
        digits.type(command)
    assert (digits.folder / "lr-depth.png").read_bytes().startswith(b"\x89PNG")


def test_notes_tags_and_boards(digits: Reader) -> None:
    printed = {}
    for command in command_lines(block_with("docs/web.md", "trial note 17")):
        printed[command] = digits.type(command)
    (listed,) = (text for command, text in printed.items() if "trial ls" in command)
    assert re.findall(r"^ *(\d+) ", listed, re.M) == ["17"], listed
    (board,) = (text for command, text in printed.items() if "leaderboard" in command)
    assert "digits" in board


def test_a_run_as_one_file(digits: Reader) -> None:
    for command in command_lines(block_with("docs/web.md", "--export")):
        digits.type(named(digits, command))
    for name in (named(digits, f"{ID}.html"), "run.html"):
        assert (digits.folder / name).read_text().startswith("<!doctype html>")


def test_backups(digits: Reader) -> None:
    folder = experiment_of(digits)
    page = ROOT / "docs/long-runs.md"
    commands = [line for block in blocks(page, "") for line in command_lines(block)]
    assert len(commands) == 4
    for command in commands[1:]:
        text = command.replace("DIR", "there").replace("ID", folder.name)
        digits.type(text.replace("ELSEWHERE", "elsewhere"))
    assert (digits.folder / "elsewhere" / folder.name / "experiment.json").exists()


def test_sinks_of_an_experiment_that_is_over(digits: Reader) -> None:
    commands = command_lines(block_with("docs/sinks.md", "bequeath sink ID --kind tensorboard"))
    digits.type(commands[0].replace("ID", "digits"))
    assert list((digits.folder / "runs").rglob("events.*"))


def test_operations_from_python(digits: Reader) -> None:
    (script,) = python_blocks("docs/operations.md")
    lines = script.splitlines()
    lines[-2:] = [f"print({line})" for line in lines[-2:]]
    digits.file("operations.py", "\n".join(lines))
    trials, freed = digits.type("python operations.py").splitlines()
    assert trials.count("<Trial ") == 5
    assert int(freed) > 0


def test_rest_by_curl(digits: Reader) -> None:
    """While the search goes on: a trial of one's own is submitted."""
    digits.type("bequeath experiment update maxTrialNumber 45 -e digits")
    head = digits.start("bequeath resume digits")
    server = WebServer(digits.home, digits.folder / "state")
    try:
        wait_until(lambda: is_led(experiment_of(digits)), "it is led")
        first, *requests = command_lines(block_with("docs/web.md", "T="))
        requests += command_lines(block_with("docs/web.md", '{"request"'))
        assert len(requests) == 7
        token = first.replace("8077", str(server.port))
        answers = [digits.type(f"{token}\n{asked(digits, each)}") for each in requests]
        experiments, trials, submitted, tags, board, events, inferred = answers
        assert json.loads(experiments)["experiments"][0]["name"] == "digits"
        assert len(json.loads(trials)["trials"]) == 5
        assert json.loads(submitted)["trial"] >= 43
        assert "good" in json.loads(tags)["tags"]
        assert json.loads(board)["group"] == "tuner"
        assert "\nevent: " in f"\n{events}"
        assert json.loads(inferred)["answer"]["answer"] == 7
    finally:
        server.end()
        digits.type("bequeath stop digits --grace 0")
        head.wait(120)


def asked(reader: Reader, request: str) -> str:
    """A request that fails if the answer is an error; a stream is left after some seconds."""
    text = named(reader, request).replace("curl ", "curl -sS --fail-with-body ")
    return f"{text} --max-time 5 || [ $? = 28 ]" if "/events" in text else text
