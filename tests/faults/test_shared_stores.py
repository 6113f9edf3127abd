"""Trials, head and tuner host die at each step of a publish and of a sweep of versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dispatcher.core import State, check
from dispatcher.core import events as e
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from tests.faults.experiments import Experiment
from tests.support.processes import left_of
from trial_runtime import weights

TRIALS = 12
KEEP = 1

_SHARED = {
    "module": "shared",
    "tuner": "Rounds",
    "function": "add_one",
    "trialConcurrency": 4,
    "trialRetries": 4,
    "lookahead": 4,
    "sharedStores": KEEP,
}

#: In trials, and in the one head or the other. Each strikes once in all.
_IN_TRIALS = (
    "store.version.written@1=kill",
    "store.offer.answered@1=kill",
    "store.state.merged@1=kill",
)
_IN_HEADS = (
    "keeper.versions.listed@2=kill",
    "keeper.versions.granted@1=kill",
    "keeper.versions.removed@1=kill",
)


def test_whoever_dies_a_store_is_whole_and_no_publish_counts_twice(
    make: Callable[..., Experiment],
) -> None:
    """A process for each trial, so that its death is its own. Three heads die, and three trials:
    one that had written and not offered, one that did not hear that it was accepted, and one
    while it merged. What the versions say is what was accepted, each once; what is not needed is
    gone."""
    experiment = make(trials=TRIALS, reuse="forked", **_SHARED)
    experiment.create()
    plans = [",".join((*_IN_TRIALS, plan)) for plan in _IN_HEADS]
    killed = experiment.lead_to_the_end(*plans)
    for plan in (*_IN_TRIALS, *_IN_HEADS):
        assert experiment.has_struck(plan.partition("=")[0]), f"{plan} was never reached"
    assert killed == len(_IN_HEADS)
    assert left_of(experiment.folder) == []
    state = _state(experiment.folder)
    assert all(trial.success for trial in state.trials.values()), "each was tried again"
    kept = _kept(experiment, state)
    newest = kept[-1]
    counts = {int(name[6:]): one.sum() / 8 for name, one in newest.items() if "trial" in name}
    assert set(counts) == set(range(1, TRIALS)), "nothing that was published is lost"
    published = len(state.stores["omega"])
    assert sum(counts.values()) == published - 1, "each version counts once"
    assert newest["all"].tolist() == [float(published - 1)] * 256
    attempts = {(version.trial, version.attempt) for version in _offered(experiment)}
    assert published <= len(attempts), "no attempt's publish counts twice"


def _state(folder: Path) -> State:
    journal = SqliteJournal.open(folder / "journal.sqlite")
    try:
        state = read_whole_past(journal, Compaction(journal)).state
    finally:
        journal.close()
    check(state)
    return state


def _kept(experiment: Experiment, state: State) -> list[dict]:  # type: ignore[type-arg]
    """The states of all versions on the books, each as it was announced; few of them."""
    (root,) = (experiment.folder / "weights" / ".stores").iterdir()
    found = []
    for number in state.kept_versions["omega"]:
        version = state.stores["omega"][number - 1]
        assert version is not None
        found.append(weights.load(root / version.path, digest=version.digest, root=str(root)))
        assert found[-1]["frozen"].tolist() == [1.0] * 2048, "a file of a version that is gone"
    there = {f"omega/{each.name}" for each in (root / "omega").iterdir()}
    names = {version.path for version in state.stores["omega"] if version is not None}
    assert names <= there
    # The newest has tensors in the files of each that added some; what the dead left has nobody.
    offered = {offer.path for offer in _offered(experiment)}
    assert there <= offered, "what the dead have left is gone"
    assert len(found) <= 1 + KEEP, "old ones are gone: one is held, and the newest stay"
    return found


def _offered(experiment: Experiment) -> list[e.VersionOffered]:
    return [x for x in experiment.events if isinstance(x, e.VersionOffered)]
