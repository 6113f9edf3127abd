"""The agent's part: each attempt has a view of its own, and what is not wanted any more goes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.workers import LOCAL, agent_config
from tests.unit.weights.remote.conftest import Lab, assert_same, state
from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.remote_weights import RemoteWeights, view_of
from trial_runtime.errors import WeightsError
from trial_runtime.weights.loading.loading import load
from trial_runtime.weights.remote.pulling import NotPublished
from trial_runtime.weights.saving.saving import save


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> AgentConfig:
    return agent_config(
        tmp_path, slots=1, weights_root=str(tmp_path / "weights"), remote=lab.place.root
    )


@pytest.fixture
def remote(lab: Lab, config: AgentConfig) -> RemoteWeights:
    return RemoteWeights(config, lab.place, lab.cache)


def order(
    trial: int, attempt: int, parent: int | None = None, digest: str = ""
) -> facts.StartAttempt:
    start = facts.StartAttempt(LOCAL, trial, attempt, "{}", f"t/{trial}")
    if parent is None:
        return start
    return dataclasses.replace(
        start, restore_path=f"t/{parent}", restore_digest=digest or None, restore_kind="bequeath"
    )


def test_from_parent_to_child(remote: RemoteWeights, config: AgentConfig) -> None:
    remote.prepare(order(1, 1))
    above = save(state(), "t/1", root=view_of(config, 1, 1), writer="1.1")
    assert remote.publish(order(1, 1), above.digest).digest == above.digest
    remote.discard((1, 1))
    assert not Path(view_of(config, 1, 1)).exists()

    child = order(2, 1, 1, above.digest)
    remote.prepare(child)
    view = view_of(config, 2, 1)
    assert_same(dict(load("t/1", digest=above.digest, root=view)), state())
    own = save(state(1), "t/2", parent="t/1", root=view, writer="2.1")
    assert remote.publish(child, own.digest).kind == "bequeath"
    remote.discard((2, 1))
    grandchild = order(3, 1, 2, own.digest)
    remote.prepare(grandchild)
    assert_same(dict(load("t/2", digest=own.digest, root=view_of(config, 3, 1))), state(1))


def test_a_view_that_is_not_wanted_any_more_goes_when_it_is_made(
    remote: RemoteWeights, config: AgentConfig, lab: Lab
) -> None:
    digest = lab.trained("1.1", state()).published.digest
    fs = lab.fs

    def stopped(*words: object, **options: object) -> object:
        remote.discard((2, 1))  # as the loop does while a helper's thread is at work
        assert Path(view_of(config, 2, 1)).exists()
        return fs.inner.open(*words, **options)

    fs.plan["open"] = [stopped]
    remote.prepare(order(2, 1, 1, digest))
    assert not Path(view_of(config, 2, 1)).exists()


def test_views_of_an_agent_before_go(remote: RemoteWeights, config: AgentConfig, lab: Lab) -> None:
    remote.prepare(order(1, 1))
    assert Path(view_of(config, 1, 1)).exists()
    RemoteWeights(config, lab.place, lab.cache)
    assert not Path(view_of(config, 1, 1)).exists()


def test_an_agent_that_leaves_leaves_no_view(remote: RemoteWeights, config: AgentConfig) -> None:
    """Its last attempt may have ended a moment ago. Mutation: they are left to a next agent."""
    remote.close()
    remote.prepare(order(1, 1))
    save(state(), "t/1", root=view_of(config, 1, 1), writer="1.1")
    remote.close()
    assert list(Path(view_of(config, 1, 1)).parent.iterdir()) == []


def test_a_parent_that_this_experiment_never_committed(remote: RemoteWeights) -> None:
    with pytest.raises(WeightsError, match="nothing of this experiment was published at 't/9'"):
        remote.prepare(order(2, 1, 9))


def test_memory_that_is_gone_is_called_so(lab: Lab) -> None:
    digest = lab.trained("1.1", state()).published.digest
    for name in (*lab.place.listing("published"), *lab.place.listing("objects")):
        lab.place.remove(name)
    with pytest.raises(NotPublished) as caught:
        lab.pulled("2.1", "t/1", digest)
    in_memory = lab.place.root.in_memory
    assert ("as long as the agent that holds it" in caught.value.hint) is in_memory


def test_attempts_of_one_trial_have_views_of_their_own(config: AgentConfig) -> None:
    assert view_of(config, 1, 1) != view_of(config, 1, 2)
    folder = replace(config, remote=None)
    assert view_of(folder, 1, 1) == view_of(folder, 1, 2) == config.weights_root
