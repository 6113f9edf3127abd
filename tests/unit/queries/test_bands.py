"""Bands of curves: what they are at each step, and that a few of many trials stand for all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dispatcher import queries
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Weights
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import DIGEST, Life


def told(folder: Path, curves: list[list[float]]) -> None:
    """Write trials with these intermediate metrics, whose results are their last."""
    life = Life(SqliteJournal.open(folder / "journal.sqlite"), slots=1)
    life.begin()
    for trial, curve in enumerate(curves):
        life.propose(trial)
        life.say(e.AttemptStarted(TrialId(trial), 1, 4000))
        life.say(*(e.MetricReported(TrialId(trial), 1, seq, repr(value))
                   for seq, value in enumerate(curve, 1)))  # fmt: skip
        life.say(
            e.FinalReported(TrialId(trial), 1, len(curve) + 1, repr(curve[-1])),
            e.WeightsPublished(TrialId(trial), 1, len(curve) + 2, Weights(DIGEST, "bequeath", 1)),
        )
        life.exit(trial)
        life.deliver(trial)
    life.journal.close()


def test_bands_are_those_of_the_curves_that_came_so_far(tmp_path: Path) -> None:
    """Mutation: curves that have ended count on, points that are missing count as none."""
    folder = make_folder(tmp_path)
    told(folder, [[float(trial), trial + 0.5] for trial in range(11)] + [[100.0]])
    with ExperimentReader.open(folder) as reader:
        found = queries.curve_bands(reader)
    assert (found.trials, found.used, found.steps) == (12, 12, (1, 2))
    assert found.low == (pytest.approx(1.1), 1.5)
    assert found.middle == (5.5, 5.5)
    assert found.high == (pytest.approx(9.9), 9.5)


def test_too_few_curves_have_no_band(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    told(folder, [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0]])
    with ExperimentReader.open(folder) as reader:
        found = queries.curve_bands(reader)
        assert (found.used, found.steps) == (3, (1,))
        assert queries.curve_bands(reader, "loss").steps == ()


def test_of_many_trials_some_are_looked_at_from_the_worst_to_the_best(tmp_path: Path) -> None:
    """Mutation: the first so many, which are those of the beginning."""
    folder = make_folder(tmp_path)
    draw = random.Random(3)
    values = [float(one) for one in range(300)]
    draw.shuffle(values)
    told(folder, [[value, value] for value in values])
    with ExperimentReader.open(folder) as reader:
        found = queries.curve_bands(reader, most=60)
    assert (found.trials, found.used) == (300, 60)
    assert found.low[0] == pytest.approx(30, abs=10)
    assert found.middle[0] == pytest.approx(150, abs=10)
    assert found.high[0] == pytest.approx(270, abs=10)


def test_long_curves_have_a_hundred_steps(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    told(folder, [[float(one) for one in range(1_000)]] * 3)
    with ExperimentReader.open(folder) as reader:
        found = queries.curve_bands(reader)
    assert len(found.steps) == 100
    assert (found.steps[0], found.steps[-1]) == (1, 1_000)
    assert found.middle == tuple(float(step - 1) for step in found.steps)


def test_none_have_none(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    SqliteJournal.open(folder / "journal.sqlite").close()
    with ExperimentReader.open(folder) as reader:
        found = queries.curve_bands(reader)
    assert (found.trials, found.used, found.steps) == (0, 0, ())
