"""A notebook shows short texts and small tables, and nothing of others unescaped."""

from __future__ import annotations

import dataclasses
import html
import operator
import re
from pathlib import Path

import pytest

from dispatcher.api import Experiment
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.notebook.showing import ListedTrials
from dispatcher.queries.as_html import LONGEST, cell, table
from tests.unit.queries.evolution import evolve, make_folder

#: What a notebook asks a value for.
as_html = operator.methodcaller("_repr_html_")

EVIL = "<script>alert('x')</script>&\x1b[2J\u202e"

VALUES = {
    "tuner": {"name": "random"},
    "trialCommand": "true",
    "trialConcurrency": 2,
    "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    folder = make_folder(tmp_path / "home")
    evolve(folder, 30)
    (folder / "experiment.json").write_text(to_json(build_experiment(VALUES, base_folder=folder)))
    return Experiment.open(folder)


def rows(text: str) -> list[list[str]]:
    """The cells of all rows, as a browser shows them."""
    return [
        [html.unescape(one) for one in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", text)
    ]


def test_cells_are_escaped_and_cut() -> None:
    """Mutation: the text of a trial is put into the page as it is."""
    assert "<script" not in cell(EVIL)
    assert "\x1b" not in cell(EVIL)
    assert "\u202e" not in cell(EVIL)
    assert cell("\ud800\u061c") == "��"  # no page can be sent the first one
    assert len(html.unescape(cell("a" * 1000))) == LONGEST
    assert cell(0.123456789) == "0.123457"
    assert cell(None) == ""
    assert table([("a", 1)]) == (
        '<table><tbody><tr><th scope="row">a</th><td>1</td></tr></tbody></table>'
    )
    assert "<script" not in table([(EVIL, EVIL)], (EVIL, EVIL), EVIL)


def test_a_trial_and_a_list(experiment: Experiment) -> None:
    trials = experiment.trials()
    one = dataclasses.replace(trials[11], error=EVIL, parameters={EVIL: EVIL})
    assert "<script" not in as_html(one)
    assert ["state", "failed"] in rows(as_html(one))
    assert isinstance(trials, ListedTrials)
    shown = rows(as_html(trials))
    assert shown[0][:5] == ["trial", "state", "result", "parent", "depth"]
    assert len(shown) == 21
    assert "the first 20 of them" in as_html(trials)
    assert f"… and {len(trials) - 20} more" in repr(trials)
    assert trials == list(trials)
    assert trials[3:5] == [trials[3], trials[4]]


def test_an_experiment_and_its_summary(experiment: Experiment) -> None:
    best = experiment.best()
    assert best is not None
    text = as_html(experiment)
    assert ["best", f"{best.value:.6g} (trial {best.id})"] in rows(text)
    assert text.count("<table>") == 2
    assert ["status", "created"] in rows(as_html(experiment.status()))
    assert len(repr(experiment)) < 100
    assert "30 trials over" in repr(experiment)


def test_one_that_has_not_been_started() -> None:
    made = Experiment({**VALUES, "experimentName": "nets", "maxTrialNumber": 7})
    assert repr(made) == "<Experiment 'nets', not started>"
    assert ["tuner", "Random"] in rows(as_html(made))
    assert ["trials", "7"] in rows(as_html(made))
