"""Commands of the examples' READMEs, typed one after the other; the searches are cut short."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
import yaml

from tests.support.pages import ROOT, Reader, blocks, command_lines

#: What is other than in the example's file, so that a few trials do.
SHORTER: dict[str, dict[str, Any]] = {
    "digits_evolution": {"maxTrialNumber": 4},
    "enas_digits": {"maxTrialNumber": 33},
    "hello": {},
    "morphism_digits": {"maxTrialNumber": 12},
    "pbt_digits": {"maxTrialNumber": 9},
    "spos_digits": {"maxTrialNumber": 5, "classArgs": {"population_size": 4, "top": 2}},
}

#: What each leaves beside its code, as the README shows it.
PICTURES = {
    "enas_digits": "progress.png",
    "morphism_digits": "pareto.png",
    "pbt_digits": "population.png",
    "spos_digits": "paths.png",
}


@pytest.fixture
def copied(reader: Reader) -> Reader:
    """A reader with a copy of all examples, without the pictures that were drawn before."""
    shutil.copytree(ROOT / "examples", reader.folder / "examples")
    for name, picture in PICTURES.items():
        (reader.folder / "examples" / name / picture).unlink()
    return reader


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.torch if name == "digits_evolution" else ())
        for name in SHORTER
    ],
)
def test_the_commands_of_an_example(copied: Reader, name: str) -> None:
    file = copied.folder / "examples" / name / "experiment.yml"
    keys = yaml.safe_load(file.read_text())
    shorter = dict(SHORTER[name])
    keys["tuner"]["classArgs"] = keys["tuner"].get("classArgs", {}) | shorter.pop("classArgs", {})
    if name == "spos_digits":
        keys["tuner"]["classArgs"]["supernet"]["steps"] = 300
    file.write_text(json.dumps(keys | shorter))
    page = ROOT / "examples" / name / "README.md"
    commands = [line for block in blocks(page, "") for line in command_lines(block)]
    assert commands
    for command in commands:
        words = [
            keys["experimentName"] if word in ("EXPERIMENT", "ID") else word
            for word in command.split(" ")
        ]
        copied.type(" ".join(words))
    if name in PICTURES:
        drawn = (copied.folder / "examples" / name / PICTURES[name]).read_bytes()
        assert drawn.startswith(b"\x89PNG")


@pytest.mark.torch
def test_the_picture_of_a_measurement(copied: Reader) -> None:
    """Of what was measured, which lies beside it."""
    folder = copied.folder / "examples" / "digits_evolution"
    (folder / "progress.png").unlink()
    copied.type("python examples/digits_evolution/picture.py")
    assert (folder / "progress.png").read_bytes().startswith(b"\x89PNG")


def test_all_of_them_are_here() -> None:
    """Mutation: one more example whose commands nobody types. Those of NNI's words are run in
    tests/integration/nni/test_examples.py, packages in tests/integration/platforms."""
    there = {page.parent.name for page in (ROOT / "examples").glob("*/README.md")}
    apart = {"backend_prefix", "backend_queue", "coming_from", "nni_classic"}
    assert there - apart == SHORTER.keys()
