"""Search spaces in short, in files and in Python: what the tuner gets, and where mistakes are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment import ExperimentFileErrors, load_experiment
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiment.updates import apply_update
from tuners.space import parameters as bq

ROOT = Path(__file__).resolve().parents[3]
HEAD = "trialCommand: 'true'\ntrialConcurrency: 1\ntuner: {name: Random}\n"

SHORT = """\
searchSpace:
  lr: loguniform(1e-4, 1e-1)
  layers: int(1, 8)
  width: int(64, 256, 64)
  batch: int(1, 256, log=true)
  activation: choice(relu, gelu)
  cells: "blocks(1, 8, {op: choice(conv, pool), width: int(8, 64)})"
  optimizer:
    _type: choice
    _value:
      sgd: {momentum: 'uniform(0, 1)'}
      adam:
  _constraints: [layers * width <= 1024]
"""

JSON = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "width": {"_type": "qrandint", "_value": [64, 257, 64]},
    "batch": {"_type": "lograndint", "_value": [1, 257]},
    "activation": {"_type": "choice", "_value": ["relu", "gelu"]},
    "cells": {
        "_type": "blocks",
        "_value": [
            1,
            8,
            {
                "op": {"_type": "choice", "_value": ["conv", "pool"]},
                "width": {"_type": "randint", "_value": [8, 65]},
            },
        ],
    },
    "optimizer": {
        "_type": "choice",
        "_value": [
            {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 1]}},
            {"_name": "adam"},
        ],
    },
    "_constraints": ["layers * width <= 1024"],
}

PYTHON = {
    "lr": bq.loguniform(1e-4, 1e-1),
    "layers": bq.int(1, 8),
    "width": bq.int(64, 256, 64),
    "batch": bq.int(1, 256, log=True),
    "activation": bq.choice("relu", "gelu"),
    "cells": bq.blocks(1, 8, {"op": bq.choice("conv", "pool"), "width": bq.int(8, 64)}),
    "optimizer": bq.choice({"sgd": {"momentum": bq.uniform(0, 1)}, "adam": {}}),
}


def errors_of(folder: Path, text: str, head: str = HEAD) -> list[str]:
    file = folder / "e.yml"
    file.write_text(head + text)
    with pytest.raises(ExperimentFileErrors) as refused:
        load_experiment(file)
    return [
        f"{error.where.rpartition('/')[2]}: {error.message} ({error.hint})"
        for error in refused.value.errors
    ]


def keys(folder: Path, space: Any) -> dict[str, Any]:
    own = {"trialCodeDirectory": str(folder), "experimentWorkingDirectory": str(folder / "kept")}
    return {"trialCommand": "true", "trialConcurrency": 1, "tuner": {"name": "Random"}} | {
        "searchSpace": space,
        **own,
    }


def test_a_file_in_short_is_nnis_form_to_all_that_read_it(tmp_path: Path) -> None:
    """Mutation: the texts reach the tuner as they are."""
    file = tmp_path / "e.yml"
    file.write_text(HEAD + SHORT)
    config = load_experiment(file)
    assert config.search_space == JSON
    assert from_json(to_json(config)).search_space == JSON
    (tmp_path / "space.yml").write_text(SHORT.partition("\n")[2].replace("\n  ", "\n")[2:])
    file.write_text(HEAD + "searchSpaceFile: space.yml\n")
    assert load_experiment(file).search_space == JSON


@pytest.mark.parametrize(
    "space",
    [
        {**PYTHON, "_constraints": ["layers * width <= 1024"]},
        bq.space(PYTHON, ["layers * width <= 1024"]),
    ],
)
def test_python_gives_the_same(space: Any, tmp_path: Path) -> None:
    config = build_experiment(keys(tmp_path, space))
    assert config.search_space == JSON
    changed = apply_update(config, "search_space", {"lr": bq.uniform(0, 1), "n": "int(1, 2)"})
    assert changed.search_space == {
        "lr": {"_type": "uniform", "_value": [0, 1]},
        "n": {"_type": "randint", "_value": [1, 3]},
    }
    assert apply_update(config, "searchSpace", "{n: 'int(1, 2)'}").search_space == {
        "n": {"_type": "randint", "_value": [1, 3]}
    }


@pytest.mark.parametrize(
    "line, wanted",
    [
        (
            "lr: logunifrom(1e-4, 1)",
            "e.yml:5:7: 'searchSpace.lr' is 'logunifrom(1e-4, 1)', which calls 'logunifrom', "
            "which is no kind of parameter (did you mean loguniform(1e-4, 1e-1)?)",
        ),
        (
            "lr: loguniform(0, 1)",
            "e.yml:5:7: 'searchSpace.lr' is 'loguniform(0, 1)', whose low must be above 0 for "
            "loguniform, not 0 (write e.g. loguniform(1e-4, 1e-1))",
        ),
        (
            "o: {_type: choice, _value: {sgd: {m: 'uniform(1, 0)'}}}",
            "e.yml:5:40: 'searchSpace.o._value.sgd.m' is 'uniform(1, 0)', which is contradictory: "
            "1 to 0 holds nothing (write the lower bound first)",
        ),
        (
            "o: {_type: choice, _value: {sgd: 3}}",
            "e.yml:5:30: 'searchSpace.o._value' has the number 3 below 'sgd', and needs the "
            "parameters of that option (write {sgd: {}} for none; options without parameters are "
            "arguments: choice('sgd', 'adam'))",
        ),
        (
            "o: {_type: choice, _value: {sgd: {m: uniform(0, 1)}}}",
            "e.yml:5:40: 'searchSpace.o._value.sgd.m' is 'uniform(0', which is not closed: a ')' "
            "is missing (within {} and [] of YAML a comma ends a text: put it in quotes, "
            "'uniform(0, 1)')",
        ),
        (
            "c: {_type: blocks, _value: [1, 8, {w: 'int(8, 1)'}]}",
            "e.yml:5:41: 'searchSpace.c._value[2].w' is 'int(8, 1)', which holds nothing: 8 to 1 "
            "(write the lower bound first)",
        ),
        (
            'c: "blocks(1, 8, {w: uniform(1, 0)})"',
            "e.yml:5:6: 'searchSpace.c' is 'blocks(1, 8, {w: uniform(1, 0)})', whose block at "
            "w._value is contradictory: 1 to 0 holds nothing (write the lower bound first)",
        ),
        (
            "n: int(1, 8)\n  _constraints: [n < 3, m < 3]",
            "e.yml:6:25: 'searchSpace._constraints[1]' names 'm', which is no parameter; did you "
            "mean 'n'? (there are n)",
        ),
        (
            "n: int(1, 8)\n  _constraints: [n > 8]",
            "e.yml:6:17: 'searchSpace._constraints' leaves nothing: none of 5,000 draws meets "
            "'n > 8' (loosen them, or narrow the bounds of their parameters)",
        ),
    ],
)
def test_a_mistake_has_its_line_and_column(line: str, wanted: str, tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, f"searchSpace:\n  {line}\n")
    assert error.replace("; did you mean 'n'?", "") == wanted.replace("; did you mean 'n'?", "")


def test_every_mistake_of_a_file_is_named_at_once(tmp_path: Path) -> None:
    text = "searchSpace:\n  a: unifrom(0, 1)\n  b: int(1, 8)\n  c: int(8, 1)\n  d: uniform(0)\n"
    assert [error.partition(": ")[0] for error in errors_of(tmp_path, text)] == [
        "e.yml:5:6", "e.yml:7:6", "e.yml:8:6",
    ]  # fmt: skip


def test_a_tuner_of_ones_own_keeps_its_own_texts(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    head = HEAD.replace("{name: Random}", "{className: mine.Mine}")
    file = tmp_path / "e.yml"
    file.write_text(f"{head}searchSpace: {{a: conv(3), b: 'int(1, 8)', c: uniform}}\n")
    space = load_experiment(file).search_space
    assert space == {"a": "conv(3)", "b": {"_type": "randint", "_value": [1, 9]}, "c": "uniform"}
    (error,) = errors_of(tmp_path, "searchSpace: {b: 'int(8, 1)'}\n", head)
    assert "holds nothing: 8 to 1" in error


def test_all_blocks_of_the_page_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    text = (ROOT / "docs" / "search-spaces.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert len(blocks) >= 6
    read = []
    for block in blocks:
        file = tmp_path / "e.yml"
        file.write_text(HEAD + block)
        read.append(load_experiment(file).search_space)
    assert read[0] == read[1]
    one, other = [space for space in read if "cells" in space]
    assert one == other
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    assert build_experiment(keys(tmp_path, names["search_space"])).search_space == read[0]
    assert build_experiment(keys(tmp_path, names["space"])).search_space["_constraints"]
    assert build_experiment(keys(tmp_path, {"cells": names["cells"]})).search_space == {
        "cells": one["cells"]
    }
    assert names["study"].best().value > 60
    names["study"].close()
    json.dumps(read)
