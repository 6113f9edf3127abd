"""Who sees whose weights, and how workers of one storage domain are held together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import State, new_state
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Version
from dispatcher.core.settings import Settings
from dispatcher.core.stores import enter
from dispatcher.experiment import build_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiments import versions
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.maintenance import stores
from dispatcher.wiring.places import places
from dispatcher.wiring.settings import settings_of
from dispatcher.wiring.storage_domains import (
    Shares,
    domain_of_head,
    unseen_domains,
    unseen_weights,
)


def config(*services: dict[str, Any]) -> ExperimentConfig:
    return build_experiment(
        {
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 4,
            "trainingService": list(services),
        }
    )


def ssh(*machines: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"platform": "ssh", "machineList": list(machines), **keys}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_machine_s_word_counts_before_its_service_s() -> None:
    made = config(
        {"platform": "local"},
        ssh({"host": "a"}, {"host": "b", "storageDomain": "sea", "cost": 0}, storageDomain="lake",
            cost=3),
    )  # fmt: skip
    assert domain_of_head(made) == ""
    assert unseen_domains(made) == {"a": "lake", "b": "sea"}
    rules = settings_of(made).worker_rules
    assert {name: (rule.domain, rule.cost) for name, rule in rules.items()} == {
        "a": ("lake", 3.0),
        "b": ("sea", 0.0),
    }


def test_the_head_sees_what_this_machine_s_service_shares() -> None:
    made = config(
        {"platform": "local", "storageDomain": "lake"},
        ssh({"host": "a", "storageDomain": "lake"}, {"host": "b"}),
    )
    assert unseen_domains(made) == {"b": ""}


def test_the_first_of_a_domain_says_its_token_and_the_others_must_find_it(tmp_path: Path) -> None:
    """Also for the next head. Mutation: each agent's word replaces the one before."""
    made = config(
        {"platform": "local"},
        ssh({"host": "a", "storageDomain": "lake"}, {"host": "b", "storageDomain": "lake"}),
    )
    here, one, two = places(made)
    shares = Shares(made, tmp_path, lambda: "of the head")
    assert shares.of(here).token() == "of the head"
    assert shares.of(one) is shares.of(two)
    lake = shares.of(one)
    assert (lake.unseen, lake.token()) == (True, "")
    assert lake.judge("a", "1234") == ""
    assert lake.judge("a", "1234") == "", "it says it at each hello"
    assert lake.token() == "1234"
    assert lake.judge("b", "5678") == (
        "the weights root of b is another share than that of a, and both are in the storage "
        "domain 'lake'"
    )
    later = Shares(made, tmp_path, lambda: "of the head").of(two)
    assert later.token() == "1234"
    assert "than what others have there" in later.judge("b", "5678")
    assert later.judge("b", "") == "", "one that was told what to find says nothing"


def test_whose_weights_are_not_seen_is_one_sentence() -> None:
    made = config(
        {"platform": "local"},
        ssh({"host": "a"}, {"host": "b", "storageDomain": "sea"}, storageDomain="lake"),
    )
    assert unseen_weights(made, {}) == ""
    assert unseen_weights(made, {1: "a", 2: "b", 4: "a"}) == (
        "weights of 3 trials lie in the storage domain 'lake' (workers a) and the storage domain "
        "'sea' (workers b), which is not seen from here"
    )


def test_a_token_that_cannot_be_kept_holds_for_this_head(tmp_path: Path) -> None:
    """Said in the engine's thread, which a full disk here must not end."""
    made = config({"platform": "local"}, ssh({"host": "a", "storageDomain": "lake"}))
    _, one = places(made)
    lake = Shares(made, tmp_path / "gone", lambda: "of the head").of(one)
    assert lake.judge("a", "1234") == ""
    assert lake.token() == "1234"
    assert "is another share than that of a" in lake.judge("b", "5678")


def test_versions_that_lie_elsewhere_are_not_taken_off_the_books_by_gc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their files would stay, and nothing would know of them any more."""

    def read(store: Path) -> State:
        state = new_state(Settings(slots=1, lookahead=1))
        for number in range(1, 4):
            enter(state, "omega", Version(f"omega/{number}.1-0a", "d", 1, TrialId(number), 1))
        return state

    monkeypatch.setattr(stores, "state_with_stores", read)
    elsewhere = config({"platform": "local"}, ssh({"host": "a", "storageDomain": "lake"}))
    place = ExperimentFolder(tmp_path)
    assert versions.removable(place, elsewhere, 1) == []
    assert versions.sweep(place, elsewhere, 1) is None
    assert versions.removable(place, config({"platform": "local"}), 1) == [
        ("omega", 1),
        ("omega", 2),
    ]
