"""Which tensors came from whom, by manifests that real saves have written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Weights
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.tensors import TensorChange, TensorOrigin, TensorOrigins
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import TRIAL_TENSORS
from dispatcher.queries import TrialNotFound
from dispatcher.store.journal import SqliteJournal
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life
from trial_runtime.weights import save

State = dict[str, np.ndarray]


def layer(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@dataclass
class Family:
    """An experiment whose trials have saved real weights, each a child of one before."""

    folder: Path
    life: Life
    count: int = 0
    states: list[State] = field(default_factory=list)

    @classmethod
    def made(cls, base: Path, **more: object) -> Family:
        folder = make_folder(base)
        values = {
            "tuner": {"name": "random"}, "trialCommand": "true", "trialConcurrency": 2,
            "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}}, **more,
        }  # fmt: skip
        config = to_json(build_experiment(values, base_folder=folder))
        (folder / "experiment.json").write_text(config)
        life = Life(SqliteJournal.open(folder / "journal.sqlite"))
        life.begin()
        return cls(folder, life)

    @property
    def root(self) -> Path:
        return self.folder / "weights"

    def trial(self, state: State | None, parent: int | None = None, *, full: bool = False) -> int:
        """Run one that saves this state; None: by its own means."""
        number, self.count = self.count, self.count + 1
        weights = Weights("d" * 64, "files", 10)
        if state is not None:
            above = None if parent is None or full else self.root / f"t/{parent}"
            saved = save(state, self.root / f"t/{number}", parent=above, root=str(self.root))
            weights = Weights(saved.digest, "bequeath", saved.bytes_written)
        self.life.propose(number, parent)
        trial = TrialId(number)
        self.life.say(e.AttemptStarted(trial, 1, 4000 + number))
        self.life.say(e.FinalReported(trial, 1, 1, "0.5"), e.WeightsPublished(trial, 1, 2, weights))
        self.life.exit(number)
        self.life.deliver(number)
        return number

    def origins(self, trial: int) -> TensorOrigins:
        return ExperimentHandle(self.folder).weights.tensors(trial)

    def of(self, trial: int) -> dict[str, TensorOrigin]:
        found = self.origins(trial)
        assert found.why == ""
        return {one.name: one for one in found.tensors}


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family.made(tmp_path)


BEGIN = {"stem.w": layer(1, 4, 4), "stem.b": layer(2, 4), "head.w": layer(3, 4, 8)}


def test_each_tensor_is_followed_to_the_trial_that_wrote_it(family: Family) -> None:
    """Mutation: the parent for the ancestor, names for bytes, a copy for the parent's."""
    family.trial(BEGIN)
    second = {**BEGIN, "stem.b": layer(9, 4)}
    family.trial(second, 0)
    third = {**second, "head.w": layer(8, 4, 16), "tail.w": layer(7, 2)}
    family.trial(third, 1)
    found = family.of(2)
    assert {name: (one.change, one.origin, one.generations) for name, one in found.items()} == {
        "stem.w": (TensorChange.UNCHANGED, 0, 2),
        "stem.b": (TensorChange.UNCHANGED, 1, 1),
        "head.w": (TensorChange.RESIZED, 2, 0),
        "tail.w": (TensorChange.NEW, 2, 0),
    }
    assert found["head.w"].before == "F32 4×8"
    assert found["head.w"].bytes == 4 * 16 * 4
    assert found["stem.w"].stored == 0
    assert family.of(1)["stem.b"].change is TensorChange.CHANGED
    assert {one.change for one in family.of(0).values()} == {TensorChange.WRITTEN}
    assert family.origins(0).parent is None


def test_the_sums_are_those_of_the_tensors(family: Family) -> None:
    family.trial(BEGIN)
    family.trial({**BEGIN, "stem.b": layer(9, 4)}, 0)
    told = perform(TRIAL_TENSORS, Context(), experiment=str(family.folder), trial=1)
    assert (told.count, told.bytes) == (3, sum(one.nbytes for one in BEGIN.values()))
    assert {name: (one.tensors, one.bytes) for name, one in told.changes.items()} == {
        "unchanged": (2, 64 + 128),
        "changed": (1, 16),
    }
    assert [(one.trial, one.generations, one.tensors) for one in told.ancestors] == [
        (1, 0, 1), (0, 1, 2),
    ]  # fmt: skip
    assert {one.name: one.origins for one in told.groups} == {"stem": (0, 1), "head": (0,)}


def test_a_renamed_tensor_keeps_its_origin_and_tied_ones_count_once(family: Family) -> None:
    family.trial(BEGIN)
    family.trial({"body.w": BEGIN["stem.w"], "stem.b": BEGIN["stem.b"]}, 0)
    found = family.of(1)
    assert (found["body.w"].change, found["body.w"].was) == (TensorChange.UNCHANGED, "stem.w")
    assert found["body.w"].origin == 0
    assert family.origins(1).gone == ("head.w",)
    tied = layer(5, 6)
    family.trial({"a.w": tied, "b.w": tied})
    assert sorted(one.bytes for one in family.of(2).values()) == [0, 24]


def test_weights_that_were_saved_in_full_are_compared_by_digest(family: Family) -> None:
    family.trial(BEGIN)
    family.trial({**BEGIN, "stem.b": layer(9, 4)}, 0, full=True)
    found = family.of(1)
    assert (found["stem.w"].change, found["stem.w"].origin) == (TensorChange.UNCHANGED, 0)
    assert found["stem.w"].stored == 1
    assert "saved in full" in family.origins(1).notes[0]


def test_a_manifest_that_is_gone_ends_the_line_and_is_named(family: Family) -> None:
    """The bytes still lie in an ancestor's file: that much is known, and no more."""
    family.trial(BEGIN)
    family.trial({**BEGIN, "stem.b": layer(9, 4)}, 0)
    family.trial({**BEGIN, "stem.b": layer(10, 4)}, 1)
    (family.root / "t/1/manifest.json").unlink()
    found = family.of(2)
    assert (found["stem.w"].change, found["stem.w"].origin) == (TensorChange.UNCHANGED, 0)
    assert found["stem.w"].generations is None
    assert found["stem.b"].change is TensorChange.WRITTEN
    assert "trial 1" in family.origins(2).notes[0]


def test_a_manifest_of_somebody_else_is_not_believed(family: Family) -> None:
    """Mutation: the digest that was committed is not looked at."""
    family.trial(BEGIN)
    family.trial(BEGIN, 0)
    path = family.root / "t/1/manifest.json"
    forged = json.loads(path.read_text())
    forged["writer"] = "66.6"
    path.write_text(json.dumps(forged))
    told = family.origins(1)
    assert "not the manifest that was committed" in told.why
    assert told.tensors == ()


def test_what_has_no_manifest_says_why(family: Family) -> None:
    family.trial(BEGIN)
    family.trial(None, 0)
    assert "by its own means" in family.origins(1).why
    family.life.propose(2)
    assert "no weights" in family.origins(2).why
    with pytest.raises(TrialNotFound):
        family.origins(99)


def test_many_groups_become_fewer_by_shorter_names(family: Family) -> None:
    family.trial({f"blocks.{n}.conv.w": layer(n, 2) for n in range(100)})
    found = family.of(0)
    assert {one.group for one in found.values()} == {"blocks"}
