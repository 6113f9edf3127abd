"""Sweeps on real files: what is kept can be loaded, what goes is written down first."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher.errors import BackendError, PassingBackendError, UserError
from dispatcher.weight_keeper import Keep, Policy, WeightKeeper
from dispatcher.weight_keeper.keeper import LOCK_NAME
from dispatcher.weight_keeper.ledger import RemovedWeights
from tests.unit.weight_keeper.memory_ledger import LedgerRow, MemoryLedger
from trial_runtime.weights.loading.loading import load
from trial_runtime.weights.saving.saving import save


class Experiment:
    """Trials with tiny weights of three tensors, of which a child changes one."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "weights"
        self.root.mkdir(parents=True)
        self.folder = folder
        self.ledger = MemoryLedger()
        self.tensors: dict[int, dict[str, np.ndarray]] = {}
        self._moments = itertools.count(1000.0)

    def train(
        self, trial: int, parent: int | None = None, value: float = 0.0, live: bool = False
    ) -> None:
        old = self.tensors[parent] if parent is not None else {}
        state = {f"w{i}": old.get(f"w{i}", np.full(40, i, dtype=np.float32)) for i in range(3)}
        state[f"w{trial % 3}"] = np.full(40, 100.0 + trial, dtype=np.float32)
        self.tensors[trial] = state
        row = LedgerRow(trial, "running" if live else "ended", parent, f"t/{trial}", value)
        before = self.ledger.rows.get(trial)
        row.asked_at = next(self._moments) if before is None else before.asked_at
        if not live:
            row.ended_at = next(self._moments)
            above = None if parent is None else f"t/{parent}"
            row.weights_digest = save(state, f"t/{trial}", parent=above, root=str(self.root)).digest
        self.ledger.rows[trial] = row

    def manifest(self, trial: int) -> Path:
        return self.root / f"t/{trial}" / "manifest.json"

    def save_once_more(self, trial: int) -> None:
        """As another process does, which leaves the files of the save before."""
        save({"w0": np.zeros(40)}, "again", root=str(self.folder / "elsewhere"))
        shutil.copytree(
            self.folder / "elsewhere/again", self.root / f"t/{trial}", dirs_exist_ok=True
        )

    def keeper(self, policy: Policy) -> WeightKeeper:
        return WeightKeeper(self.folder, self.root, self.ledger, policy, clock=lambda: 5.0)

    def check_all_but(self, gone: Sequence[int]) -> None:
        """Those that are kept can be loaded in full, those that went cannot."""
        for trial, row in self.ledger.rows.items():
            manifest = self.root / f"t/{trial}" / "manifest.json"
            if trial in gone:
                assert not manifest.exists()
            elif row.weights_digest is not None:
                into = {name: np.zeros(40, dtype=np.float32) for name in self.tensors[trial]}
                load(f"t/{trial}", into=into, root=str(self.root))
                for name, tensor in self.tensors[trial].items():
                    np.testing.assert_array_equal(into[name], tensor)


def agree(trials: Sequence[int]) -> Sequence[int]:
    return trials


@pytest.fixture
def chain(tmp_path: Path) -> Experiment:
    """0 → 1 → 2 → 3, the last is the best."""
    made = Experiment(tmp_path)
    for trial in range(4):
        made.train(trial, trial - 1 if trial else None, value=float(trial))
    return made


def test_all_is_the_default_and_removes_nothing(chain: Experiment) -> None:
    keeper = WeightKeeper(chain.folder, chain.root, chain.ledger)
    assert keeper.sweep(agree).doomed == ()
    chain.check_all_but([])


def test_a_sweep_leaves_the_files_that_kept_trials_refer_to(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    plan = keeper.plan()
    assert not plan.done
    chain.check_all_but([])
    done = keeper.sweep(agree)
    assert (done.doomed, done.nbytes, done.shared) == (plan.doomed, plan.nbytes, plan.shared)
    assert [one.trial for one in done.doomed] == [0, 1, 2]
    assert any("t/3" in users for users in done.shared.values())
    chain.check_all_but([0, 1, 2])
    assert keeper.removed_paths() == {"t/0": 0, "t/1": 1, "t/2": 2}
    assert keeper.removed_trials() == {0, 1, 2}
    assert keeper.sweep(agree).doomed == ()


def test_what_was_left_for_a_child_goes_with_the_child(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    keeper.sweep(agree)
    assert any((chain.root / "t/1").iterdir())
    chain.train(4, value=9.0)
    done = keeper.sweep(agree)
    assert [one.trial for one in done.doomed] == [3]
    assert done.nbytes > done.doomed[0].nbytes
    assert {f.parent.name for f in chain.root.rglob("*") if f.is_file()} == {"4"}


def test_a_running_childs_parent_stays_with_what_it_inherited(chain: Experiment) -> None:
    chain.train(4, parent=2, live=True)
    done = chain.keeper(Policy(Keep.BEST, 1)).sweep(agree)
    assert [one.trial for one in done.doomed] == [0, 1]
    chain.check_all_but([0, 1])
    # The child comes to its end after the sweep, and inherits from what is left.
    chain.train(4, parent=2)
    chain.check_all_but([0, 1])


def test_what_the_head_does_not_grant_stays(chain: Experiment) -> None:
    asked: list[int] = []

    def announce(trials: Sequence[int]) -> list[int]:
        asked.extend(trials)
        assert chain.ledger.removed == {}, "announced before it is written down"
        return [trial for trial in trials if trial != 1]

    done = chain.keeper(Policy(Keep.BEST, 1)).sweep(announce)
    assert asked == [0, 1, 2]
    assert [one.trial for one in done.doomed] == [0, 2]
    chain.check_all_but([0, 2])


def test_pins_outlive_the_policy(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    keeper.pin(1, "baseline")
    assert keeper.pins() == {1: "baseline"}
    keeper.sweep(agree)
    chain.check_all_but([0, 2])
    keeper.unpin(1)
    keeper.sweep(agree)
    chain.check_all_but([0, 1, 2])


def test_a_pin_in_the_midst_of_a_sweep_holds(chain: Experiment) -> None:
    """The plan was made and asked for before it; files that the pinned one shares stay, too."""
    keeper = chain.keeper(Policy(Keep.BEST, 1))

    def announce(trials: Sequence[int]) -> Sequence[int]:
        keeper.pin(1, "the one for the paper")
        return trials

    told = keeper.sweep(announce)
    assert [one.trial for one in told.doomed] == [0, 2]
    chain.check_all_but([0, 2])
    assert keeper.removed_trials() == {0, 2}
    keeper.sweep(agree)
    chain.check_all_but([0, 2])


def test_what_cannot_be_pinned(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    keeper.sweep(agree)
    chain.ledger.rows[9] = LedgerRow(9)
    for trial, words in ((0, "are gone"), (9, "saves no weights"), (77, "no trial 77")):
        with pytest.raises(UserError, match=words):
            keeper.pin(trial)
    with pytest.raises(UserError, match="not pinned"):
        keeper.unpin(3)


def _cut(chain: Experiment) -> None:
    chain.manifest(3).write_text("{")


def _lost(chain: Experiment) -> None:
    chain.manifest(3).unlink()


def _saved_once_more(chain: Experiment) -> None:
    """An agent was killed between the rename of its second manifest and its word of it."""
    chain.save_once_more(3)


@pytest.mark.parametrize("spoil", [_cut, _lost, _saved_once_more])
def test_kept_weights_in_doubt_keep_all_that_they_could_need(
    chain: Experiment, spoil: Callable[[Experiment], None]
) -> None:
    """And nothing that is newer: the search goes on, and its disk stays as full as it was.
    Mutations: the sweep is refused; only what the manifest names now is kept."""
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    keeper.sweep(agree)  # of 1 and 2 files are left that 3 has inherited
    left = set(chain.root.rglob("*.safetensors"))
    committed = chain.manifest(3).read_bytes()
    spoil(chain)
    for newer in (4, 5):
        chain.train(newer, value=-float(newer))
    asked: list[int] = []
    done = keeper.sweep(lambda trials: asked.extend(trials) or trials)
    assert asked == [one.trial for one in done.doomed] == [4, 5]
    assert list(done.doubtful) == [3]
    assert "the weights of trial 3 are not as they were committed" in done.doubts
    assert done.to_json()["doubtful"].keys() == {"3"}
    assert left <= set(chain.root.rglob("*.safetensors"))
    chain.manifest(3).write_bytes(committed)  # the share had lagged, or somebody had a copy
    chain.check_all_but([0, 1, 2, 4, 5])
    assert keeper.sweep(agree).doubts == ""


def test_weights_that_stay_with_some_in_doubt_can_be_loaded(chain: Experiment) -> None:
    """Number 4 was asked for before 3 ended, and took 5 for its parent, which came later."""
    chain.train(4, live=True)
    chain.train(3, parent=2, value=3.0)
    chain.train(5, value=-5.0)
    chain.train(4, parent=5, value=-4.0)
    _lost(chain)
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    plan, done = keeper.plan(), keeper.sweep(agree)
    assert [one.trial for one in done.doomed] == [5]
    assert plan.doomed == done.doomed
    assert (plan.nbytes, plan.shared) == (done.nbytes, done.shared)
    chain.check_all_but([3, 5])


def test_a_removal_that_was_cut_waits_while_kept_weights_are_in_doubt(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    chain.ledger.intend_removal([RemovedWeights("t/2", 2, 0)], 0.0)
    committed = chain.manifest(3).read_bytes()
    _lost(chain)
    assert keeper.finish_removals() == 0
    assert chain.manifest(2).exists()
    assert keeper.removed_trials() == {2}, "it counts as gone all the same"
    chain.manifest(3).write_bytes(committed)
    assert keeper.finish_removals() == 1
    chain.check_all_but([2])


def test_a_place_that_cannot_be_read_stops_the_sweep(
    chain: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr("trial_runtime.weights.usage.manifest_bytes", refuse)
    with pytest.raises(BackendError, match="nothing was removed"):
        chain.keeper(Policy(Keep.BEST, 1)).sweep(agree)
    monkeypatch.undo()
    assert chain.ledger.removed == {}
    chain.check_all_but([])


def test_two_keepers_do_not_work_at_once(chain: Experiment) -> None:
    with FileLock(chain.folder / LOCK_NAME), pytest.raises(PassingBackendError, match="another"):
        chain.keeper(Policy(Keep.BEST, 1)).sweep(agree)
    chain.keeper(Policy(Keep.BEST, 1)).sweep(agree)


class _Cut(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("survived", range(6))
def test_a_removal_that_was_cut_is_finished(
    chain: Experiment, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    real, left = os.unlink, [survived]

    def unlink(path: str, **kwargs: int) -> None:
        if str(chain.root) in str(path):
            if not left[0]:
                raise _Cut
            left[0] -= 1
        real(path, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink)
        try:
            chain.keeper(Policy(Keep.BEST, 1)).sweep(agree)
        except _Cut:
            chain.check_all_but(
                [t for t in (0, 1, 2) if not (chain.root / f"t/{t}/manifest.json").exists()]
            )
    after = chain.keeper(Policy(Keep.BEST, 1))
    assert after.removed_trials() == {0, 1, 2}
    after.finish_removals()
    chain.check_all_but([0, 1, 2])
    assert all(one.removed_at is not None for one in chain.ledger.removals())
    assert after.finish_removals() == 0


def test_disk_use(chain: Experiment) -> None:
    keeper = chain.keeper(Policy(Keep.BEST, 1))
    use = keeper.disk_use()
    on_disk = sum(f.stat().st_size for f in chain.root.rglob("*") if f.is_file())
    assert use.total_bytes == on_disk
    assert use.trials[0].inherited_bytes == 0
    assert use.trials[3].inherited_bytes > 0
    keeper.sweep(agree)
    after = keeper.disk_use()
    assert [t.trial for t in after.trials] == [3]
    assert after.removed_bytes > 0
    (chain.root / "t/3/manifest.json").write_text("{")
    assert "manifest" in keeper.disk_use().trials[0].problem


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    parents=st.lists(st.integers(-2, 7), min_size=2, max_size=9),
    values=st.lists(st.integers(0, 9), min_size=9, max_size=9),
    live=st.sets(st.integers(0, 8)),
    policy=st.builds(Policy, st.sampled_from(list(Keep)), st.integers(1, 3)),
    refused=st.sets(st.integers(0, 8)),
    lagging=st.sets(st.integers(0, 8)),
)
def test_whatever_is_kept_can_be_loaded(
    tmp_path_factory: pytest.TempPathFactory,
    parents: list[int],
    values: list[int],
    live: set[int],
    policy: Policy,
    refused: set[int],
    lagging: set[int],
) -> None:
    made = Experiment(tmp_path_factory.mktemp("sweep"))
    running: set[int] = set()
    for trial, wish in enumerate(parents):
        able = [t for t in range(trial) if t not in running]
        parent = wish if wish in able else None
        if trial in live:
            running.add(trial)
        made.train(trial, parent, float(values[trial]), live=trial in live)
    keeper = made.keeper(policy)
    # Of some another manifest is to be seen for a while: what it refers to says nothing.
    unseen = {t: made.manifest(t).read_bytes() for t in lagging - running if t in made.tensors}
    for trial in unseen:
        made.save_once_more(trial)
    done = keeper.sweep(lambda trials: [t for t in trials if t not in refused])
    for trial in unseen.keys() - {one.trial for one in done.doomed}:
        made.manifest(trial).write_bytes(unseen[trial])
    gone = [one.trial for one in done.doomed]
    assert not set(gone) & refused
    made.check_all_but(gone)
    for trial in sorted(running):  # they end, and inherit from their parents' weights
        made.train(trial, made.ledger.rows[trial].parent, float(values[trial]))
    made.check_all_but(gone)
    gone += [one.trial for one in keeper.sweep(lambda trials: trials).doomed]
    made.check_all_but(gone)
