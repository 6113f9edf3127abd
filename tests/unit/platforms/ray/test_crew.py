"""What the actor of several nodes makes of a Ray that is a script."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dispatcher.platforms.ray import crew as actor_program
from dispatcher.platforms.ray.crew import NODES, Crew, bundle_of
from dispatcher.platforms.ray.driver import loaded
from tests.support.processes import wait_until

ORDER: dict[str, Any] = {
    "name": "lab-1",
    "environment": {"WHO": "ray"},
    "log": "/home/logs/agent.log",
    "grace_s": 0.0,
    "linger_s": 0.0,
    "nodes": 2,
}


class RayError(Exception):
    """As Ray's."""


class ActorDiedError(RayError):
    preempted = False


class ActorUnavailableError(RayError):
    pass


class Member:
    """An actor on a node; what it has not answered yet is waited for."""

    def __init__(self, order: dict[str, Any], options: dict[str, Any]) -> None:
        self.order, self.options = order, options
        self.answers: dict[str, list[Any]] = {"where": [], "watch": []}
        self.stops: list[float] = []
        self.told: list[str] = []
        self.where = SimpleNamespace(remote=lambda: self._asked("where"))
        self.watch = SimpleNamespace(remote=lambda: self._asked("watch"))
        self.stop = SimpleNamespace(remote=self._stopped)
        self.tell = SimpleNamespace(remote=self.told.append)

    def _asked(self, question: str) -> Any:
        ref = SimpleNamespace(answer=None)
        self.answers[question].append(ref)
        return _Ref(ref)

    def _stopped(self, grace_s: float) -> None:
        self.stops.append(grace_s)

    def is_at(self, place: str, ends_in_s: float | None = None) -> None:
        self.says("where", {"place": place, "ends_in_s": ends_in_s, "pid": 7})

    def says(self, question: str, answer: Any) -> None:
        self.answers[question][-1].answer = answer


class _Ref:
    def __init__(self, holder: Any) -> None:
        self.holder = holder


class ScriptedRay(ModuleType):
    """As much of Ray as the actor uses."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.members: list[Member] = []
        self.groups: list[tuple[Any, str]] = []
        self._pause = threading.Event()
        self.exceptions = SimpleNamespace(RayError=RayError)
        self.util = SimpleNamespace(placement_group=self._group)

    def _group(self, bundles: list[dict[str, float]], strategy: str) -> str:
        self.groups.append((bundles, strategy))
        return "a group"

    def remote(self, **options: Any) -> Any:
        def made(**more: Any) -> Any:
            def begin(order: dict[str, Any]) -> Member:
                self.members.append(Member(order, options | more))
                return self.members[-1]

            return SimpleNamespace(remote=begin)

        return lambda _class: SimpleNamespace(options=made)

    def wait(self, refs: list[_Ref], **_: Any) -> tuple[list[_Ref], list[_Ref]]:
        self._pause.wait(0.001)
        done = [ref for ref in refs if ref.holder.answer is not None][:1]
        return done, [ref for ref in refs if ref not in done]

    def get(self, ref: _Ref) -> Any:
        if isinstance(ref.holder.answer, Exception):
            raise ref.holder.answer
        return ref.holder.answer


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    one = ScriptedRay()
    monkeypatch.setitem(sys.modules, "ray", one)
    strategies = SimpleNamespace(PlacementGroupSchedulingStrategy=lambda *given: given)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    return one


@pytest.fixture
def crew_of(ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Crew]]:
    over = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda _code: over.set())
    monkeypatch.setattr(actor_program, "BEYOND_GRACE_S", 0.2)

    def make(**keys: Any) -> Crew:
        return Crew(ORDER | keys, {"num_cpus": 2, "resources": {"few": 1}}, object)

    yield make
    for member in ray.members:
        member.says("watch", {"gone": "finished", "reason": ""})
    assert over.wait(60.0), "it ends its process, which is this one"


def outcome(crew: Crew) -> Any:
    return asyncio.run(asyncio.wait_for(crew.watch(), 60))


def test_each_has_a_node_of_its_own_and_a_rank(
    crew_of: Callable[..., Crew], ray: ScriptedRay
) -> None:
    """Mutations: two on one node; both write one file; Ray starts one of them again."""
    crew_of()
    assert ray.groups == [([{"CPU": 2.0, "few": 1.0}] * 2, "STRICT_SPREAD")]
    first, second = ray.members
    assert [each.options["scheduling_strategy"] for each in ray.members] == [
        ("a group", 0),
        ("a group", 1),
    ]
    assert [each.options["name"] for each in ray.members] == ["lab-1/0", "lab-1/1"]
    for each in ray.members:
        assert (each.options["namespace"], each.options["num_cpus"]) == (NODES, 2)
        assert (each.options["max_restarts"], each.options["max_task_retries"]) == (0, 0)
        assert "lifetime" not in each.options, "it goes with this one"
    assert first.order["environment"] == {"WHO": "ray", "BEQUEATH_RANK": "0"}
    assert second.order["environment"] == {"WHO": "ray", "BEQUEATH_RANK": "1"}
    assert (first.order["name"], second.order["name"]) == ("lab-1", "lab-1.rank1")
    assert second.order["log"] == "/home/logs/agent.rank1.log"


def test_it_is_somewhere_when_all_are(crew_of: Callable[..., Crew], ray: ScriptedRay) -> None:
    crew = crew_of()
    where = asyncio.run
    ray.members[0].is_at("n1", 50.0)
    with pytest.raises(TimeoutError):
        where(asyncio.wait_for(crew.where(), 0.3))
    ray.members[1].is_at("n2", 40.0)
    there = where(asyncio.wait_for(crew.where(), 60))
    assert (there["place"], there["ends_in_s"]) == ("n1, n2", 40.0)


def test_the_end_of_the_first_ends_all(crew_of: Callable[..., Crew], ray: ScriptedRay) -> None:
    crew = crew_of()
    first, second = ray.members
    first.says("watch", {"gone": "finished", "reason": ""})
    assert outcome(crew) == {"gone": "finished", "reason": ""}
    assert second.stops == [0.0]


def test_a_follower_that_has_left_ends_nothing(
    crew_of: Callable[..., Crew], ray: ScriptedRay
) -> None:
    """It may have been a second start."""
    crew = crew_of()
    first, second = ray.members
    second.says("watch", {"gone": "finished", "reason": ""})
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(crew.watch(), 0.5))
    assert first.stops == []


def test_a_node_that_dies_is_how_all_have_ended(
    crew_of: Callable[..., Crew], ray: ScriptedRay
) -> None:
    """The others are asked first, and hand in. Mutation: how the first ended counts."""
    crew = crew_of(grace_s=30.0)
    first, second = ray.members
    second.says("watch", ActorDiedError("The actor died because its node has died."))
    wait_until(lambda: bool(first.stops), "the first is asked to end")
    assert first.stops == [30.0]
    first.says("watch", {"gone": "cancelled", "reason": ""})
    end = outcome(crew)
    assert (end["died"], end["preempted"]) == ("ActorDiedError", False)
    assert "its node has died" in end["text"]


def test_one_that_cannot_be_reached_for_a_moment_lives(
    crew_of: Callable[..., Crew], ray: ScriptedRay
) -> None:
    crew = crew_of()
    first, second = ray.members
    second.says("watch", ActorUnavailableError("unavailable"))
    wait_until(lambda: len(second.answers["watch"]) == 2, "it is asked once more")
    first.says("watch", {"gone": "wall time", "reason": ""})
    assert outcome(crew)["gone"] == "wall time"


def test_a_stop_reaches_all_once(crew_of: Callable[..., Crew], ray: ScriptedRay) -> None:
    crew = crew_of(grace_s=60.0)
    asyncio.run(crew.stop(2.0))
    for each in ray.members:
        each.says("watch", {"gone": "cancelled", "reason": ""})
    assert outcome(crew)["gone"] == "cancelled"
    assert [each.stops for each in ray.members] == [[2.0], [2.0]]


def test_the_agent_that_speaks_is_told(crew_of: Callable[..., Crew], ray: ScriptedRay) -> None:
    asyncio.run(crew_of().tell("news"))
    assert [each.told for each in ray.members] == [["news"], []]


def test_what_nobody_thought_of_is_an_end(crew_of: Callable[..., Crew], ray: ScriptedRay) -> None:
    crew = crew_of()
    ray.members[0].says("watch", KeyError("odd"))
    assert outcome(crew) == {"gone": "failed", "reason": "KeyError: 'odd'"}


@pytest.mark.parametrize(
    "options, bundle",
    [
        ({"num_cpus": 1.0, "num_gpus": 0.0, "resources": {}}, {"CPU": 1.0}),
        ({"num_cpus": 0, "num_gpus": 2, "memory": 64}, {"GPU": 2.0, "memory": 64.0}),
        ({"num_gpus": 1, "accelerator_type": "A100"}, {"GPU": 1.0, "accelerator_type:A100": 0.001}),
        ({"num_cpus": 0}, {"CPU": 0.001}),
    ],
)
def test_the_places_have_what_actors_ask_for(options: Any, bundle: Any) -> None:
    assert bundle_of(options) == bundle


def test_its_class_is_no_module_that_could_be_imported() -> None:
    there = loaded(str(actor_program.__file__)).Crew
    assert there.__name__ == "Crew"
    assert there.__module__ not in sys.modules
