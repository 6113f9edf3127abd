"""Pages that are programs: each block of the tutorial and of the recipes runs as it is printed."""

from __future__ import annotations

import os
import re
import textwrap
import tomllib
from pathlib import Path

import pytest
import yaml

from dispatcher.experiment import build_experiment
from tests.support.pages import Reader, blocks

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
LEAST = {"trialCommand": "true", "searchSpace": {"x": "uniform(0, 1)"}, "tuner": {"name": "Random"}}


def test_the_tutorial_runs_as_it_is_printed(reader: Reader) -> None:
    """``BEQUEATH_TUTORIAL_PICTURES=docs/images`` keeps its pictures."""
    printed = reader.follow(DOCS / "tutorial.md")
    assert abs(float(re.findall(r"'x': ([\d.e-]+)", printed["python first.py"])[0]) - 2) < 0.5
    assert "stopped" in printed["bequeath trial ls search --sort result"]
    assert float(printed["python search.py"].split()[-1]) > 0.85
    assert float(printed["python evolve.py"].split()[-1]) > 0.85
    assert "★" in printed["bequeath lineage evolve"]
    assert "36 trials: 36 succeeded" in printed["bequeath resume evolve"]
    assert "★" in printed["python rule.py"]
    assert "4 trials: 4 succeeded" in printed["bequeath run experiment.yml"]
    kept = os.environ.get("BEQUEATH_TUTORIAL_PICTURES")
    for name in ("first", "slice", "lineage"):
        picture = (reader.folder / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        if kept:
            (Path(kept) / f"tutorial-{name}.png").write_bytes(picture)


def test_the_extras_that_the_tutorial_installs_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for wanted in re.findall(r"\[([\w,]+)\]'", (DOCS / "tutorial.md").read_text()):
        assert set(wanted.split(",")) <= set(extras)


def test_the_recipes_run_as_they_are_printed(reader: Reader) -> None:
    """Those that no command of the page runs are run as a reader would. The trial of a supernet
    is run in test_trials.py."""
    printed = reader.follow(DOCS / "recipes.md", fragments=1)
    assert "'width':" in printed["python objectives.py"]
    assert (reader.folder / "front.png").read_bytes().startswith(b"\x89PNG")
    assert "'pretrained':" in reader.type("python transfer.py")
    outcomes = reader.type("python resume.py")
    assert outcomes.count("'succeeded', 2") == 4, outcomes


def test_an_assessor_of_ones_own_ends_trials(reader: Reader) -> None:
    """By the loop of the page, whose accuracy stays as it is from the fourth epoch on."""
    page = DOCS / "assessors.md"
    (loop,) = (block.text for block in blocks(page, "python") if not block.file)
    trial = (
        "import threading\n"
        "import bequeath as bq\n\n"
        "def trial(parameters):\n"
        "    model = [0]\n"
        f"{textwrap.indent(loop, '    ')}"
        "    return epoch\n\n"
        "def train_one_epoch(model):\n"
        "    threading.Event().wait(0.1)\n"  # the assessor is asked meanwhile
        "    model[0] += 1\n"
        "    return min(model[0], 3)\n"
    )
    (reader.folder / "trial.py").write_text(trial)
    keys = {**LEAST, "trialFunction": "trial:trial"}
    del keys["trialCommand"]
    for block in blocks(page):
        if block.file:
            reader.write(block)
        elif block.language == "yaml" and "className" in block.text:
            keys |= yaml.safe_load(block.text)
    reader.run(keys)
    assert "stopped" in reader.type("bequeath trial ls")


@pytest.mark.parametrize("page", ["assessors.md", "recipes.md"])
def test_their_lines_of_a_file_are_read(page: str) -> None:
    """Those with a class of the reader's own are run above."""
    read = 0
    for block in blocks(DOCS / page):
        if block.language == "yaml" and "className" not in block.text:
            given = yaml.safe_load(block.text)
            least = {"trainingService": {"platform": "local"}, **LEAST}
            assert build_experiment({**least, "maxTrialNumber": 1, "trialConcurrency": 1, **given})
            read += 1
    assert read
