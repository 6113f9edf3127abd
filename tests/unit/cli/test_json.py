"""``--json`` prints one document, of the shape that the reference promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.json_shapes import EXPERIMENT_KEYS, SHAPES, TRIAL_KEYS
from tests.unit.cli.conftest import Shell


def _keys(text: str) -> list[str]:
    """The keys between the first pair of braces, or of a plain list."""
    braces = re.search(r"\{([^}]*)\}", text)
    return re.split(r",\s*", braces[1] if braces else text)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("why",),
        ("best",),
        ("lineage",),
        ("trial", "ls"),
        ("trial", "show", "3"),
        ("experiment", "list"),
        ("experiment", "verify"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_the_outermost_keys_are_as_documented(words: tuple[str, ...], over: Shell) -> None:
    document = over(*words, "--json").json()
    path = " ".join(word for word in words if not word.isdigit())
    assert list(document) == _keys(SHAPES[path])


def test_trials_hold_what_is_documented(over: Shell) -> None:
    documented = _keys(TRIAL_KEYS)
    assert list(over("best", "--json").json()["trials"][0]) == documented
    assert list(over("trial", "ls", "--json").json()["trials"][0]) == documented
    assert list(over("trial", "show", 3, "--json").json()["trial"]) == documented


def test_experiments_hold_what_is_documented(over: Shell) -> None:
    assert list(over("status", "--json").json()["experiment"]) == _keys(EXPERIMENT_KEYS)
    listed = over("experiment", "list", "--json").json()["experiments"][0]
    assert ", ".join(listed) in SHAPES["experiment list"].replace("\n", " ")


def test_the_best_are_in_order(over: Shell) -> None:
    document = over("best", "--json", "-n", 4).json()
    values = [trial["value"] for trial in document["trials"]]
    assert values == sorted(values, reverse=document["mode"] == "maximize")
    assert len(values) == 4


def test_lists_are_filtered(over: Shell) -> None:
    def ids(*words: Any) -> list[int]:
        return [trial["id"] for trial in over("trial", "ls", "--json", *words).json()["trials"]]

    assert ids("--failed") == [11, 23, 35]
    assert ids("--failed", "--reverse") == [35, 23, 11]
    assert ids("-n", 2) == [0, 1]
    assert ids("--where", "outcome=failed and trial<30") == [11, 23]
    misspelt = over("trial", "ls", "--where", "outcme=failed")
    assert "no trial has a parameter 'outcme'; did you mean outcome?" in misspelt.err
    refused = over("trial", "ls", "--where", "outcome=timed out")
    assert refused.code == 3
    assert refused.err.startswith("where:15: 'and' or 'or' is missing before 'out'")
    first = over("best", "--json", "-n", 1).json()["trials"][0]["id"]
    assert ids("--sort", "value", "-n", 1) == [first]
    assert ids("--sort", "value", "--reverse", "-n", 1) != [first]


def test_validate(bequeath: Shell, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    text = "tuner: {name: Random}\ntrialCommand: 'true'\ntrialConcurrency: 1\n"
    text += "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
    good.write_text(text)
    bad.write_text(text + "maxTrialNumer: 3\n")
    document = bequeath("validate", good, "--json").json()
    assert list(document) == ["valid", "file", "experiment"]
    assert document["experiment"]["trialConcurrency"] == 1
    said = bequeath("validate", bad, "--json")
    assert said.code == 3
    assert '"valid": false' in said.out
    assert f'"where": "{bad}:5:1"' in said.out


def test_the_schema_is_json(bequeath: Shell) -> None:
    assert bequeath("config", "schema").json()["title"] == "bequeath experiment"
