"""Actors asked for, looked at and ended, over a scripted driver."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder, AllocationState, Gone
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.ray.allocator import QUICK_FOR_S, QUICK_LOOK_S, SLOW_LOOK_S, RayAllocator
from dispatcher.platforms.ray.section import RayServiceConfig
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

LABEL = "lab-0a1b2c"
NAME = f"{LABEL}-ray-1"


class ScriptedDriver:
    """Answers as it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.rows: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {}
        self.error: BackendError | None = None
        self.closed = False

    def ask(self, method: str, **arguments: object) -> Any:
        if self.error is not None:
            raise self.error
        self.asked.append((method, arguments))
        quiet = {"never": [], "failed": [], "coming": [], "error": ""}
        looked = {"rows": self.rows, "autoscaler": quiet, **self.more}
        return looked if method == "look" else None

    def close(self) -> None:
        self.closed = True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def allocator_of(
    driver: ScriptedDriver, clock: Clock, tmp_path: Path
) -> Callable[..., RayAllocator]:
    def make(**keys: Any) -> RayAllocator:
        given = ServiceGiven(
            LABEL,
            "lab",
            RayServiceConfig.model_validate({"platform": "ray", **keys}),
            tmp_path,
            ("127.0.0.1", 7070),
            lambda: pytest.fail("nothing is brought anywhere"),
            lambda: "a token",
        )
        return RayAllocator(given, driver, clock)

    return make


def order_in(folder: Path, name: str = NAME, nodes: int = 1, **more: str) -> AllocationOrder:
    config = AgentConfig(
        worker="ray",
        slots=1,
        head=Endpoint("tcp://0.0.0.0:7070"),
        epoch=1,
        run_folder="",
        experiment_folder=str(folder / "agents/ray"),
        trial=TrialSpec("/code", command="true", stop_grace_s=7.0),
        weights_root="/weights",
        ticket="secret ticket",
        nodes=nodes,
    )
    return AllocationOrder(name, config, ("-m", "trial_runtime.agent"), more, nodes=nodes)


def carried(text: str) -> AgentConfig:
    return msgspec.json.decode(base64.b64decode(text), type=AgentConfig)


def test_an_order_is_one_actor(
    allocator_of: Callable[..., RayAllocator],
    driver: ScriptedDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_KEY", "hunter3")
    allocator = allocator_of(
        gpus=1,
        wallTime="1h",
        trialPython="python3.11",
        environment={"KEY": "env:LAB_KEY", "MODE": "literal:env:x"},
    )
    allocator.submit(order_in(tmp_path, PASSWORD="hunter2"))
    ((method, asked),) = driver.asked
    assert (method, asked["name"]) == ("submit", NAME)
    assert asked["options"]["num_gpus"] == 1.0
    order = asked["order"]
    assert order["environment"] == {"PASSWORD": "hunter2", "KEY": "hunter3", "MODE": "env:x"}
    assert (order["python"], order["wall_s"], order["grace_s"]) == ("python3.11", 3600.0, 7.0)
    assert Path(order["home"], "logs").is_dir()
    there = carried(order["config"])
    assert there.ticket == "secret ticket"
    assert there.root_token == "a token", "a node shows that it has the share"
    assert there.trial.environment == {"KEY": "env:KEY"}, "its agent knows what to mask"


def test_a_variable_that_is_not_there_is_named_before_anything_is_asked_for(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver, tmp_path: Path
) -> None:
    with pytest.raises(PermanentBackendError, match="NOT_SET_HERE"):
        allocator_of(environment={"KEY": "env:NOT_SET_HERE"}).submit(order_in(tmp_path))
    assert driver.asked == []


def test_what_is_listed(allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver) -> None:
    """Mutation: one that nobody can tell from a waiting one is said to wait, and its agent would
    lose its place."""
    driver.rows = [
        {"name": "a", "state": "waiting", "waiting_s": 4.0},
        {"name": "b", "state": "running", "waiting_s": 9.0, "place": "n1", "ends_in_s": 60.0},
        {"name": "c", "state": "ended", "waiting_s": 9.0, "gone": "node lost", "reason": "died"},
        {"name": "d", "state": "ended", "waiting_s": 9.0, "gone": None, "reason": "unlisted"},
        {"name": "e", "state": "unknown", "waiting_s": 9.0},
    ]
    said = {"never": [], "failed": [["spot", 1, "no capacity"]], "coming": [], "error": ""}
    driver.more = {"nodes": [{"CPU": 2.0}], "free": {"CPU": 0.0}, "autoscaler": said}
    waits, runs, lost, gone, unknown = allocator_of().look()
    assert (waits.state, waits.waiting_s) == (AllocationState.WAITING, 4.0)
    failed = "the autoscaler could not start 1 spot: no capacity"
    assert waits.reason == f"0 of 2 CPU are free; it asks for 1 CPU; {failed}"
    assert (runs.state, runs.place, runs.ends_in_s) == (AllocationState.RUNNING, "n1", 60.0)
    assert (lost.gone, lost.reason) == (Gone.NODE_LOST, "died")
    assert gone.gone is None
    assert unknown.state is AllocationState.UNKNOWN
    assert driver.asked == [("look", {"prefix": f"{LABEL}-"})]


def test_several_nodes_are_asked_for_as_one(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver, tmp_path: Path
) -> None:
    allocator = allocator_of()
    order = order_in(tmp_path, nodes=3)
    allocator.submit(order)
    assert driver.asked[0][1]["order"]["nodes"] == 3
    driver.rows = [{"name": NAME, "state": "waiting", "waiting_s": 4.0}]
    driver.more = {"nodes": [{"CPU": 2.0}] * 3, "free": {"CPU": 2.0}}
    (waits,) = allocator.look()
    assert waits.reason == "2 of 6 CPU are free; it asks for 3 nodes with 1 CPU"
    later = allocator_of()
    later.tell(NAME, order.config)
    assert later.look()[0].reason == waits.reason, "the next head knows it as well"


def test_looks_are_few_when_nothing_is_expected_to_change(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver, clock: Clock
) -> None:
    allocator = allocator_of()
    assert allocator.look_every_s == QUICK_LOOK_S
    clock.now += QUICK_FOR_S
    assert allocator.look_every_s == SLOW_LOOK_S
    driver.rows = [{"name": "a", "state": "unknown", "waiting_s": 4.0}]
    allocator.look()
    assert allocator.look_every_s == QUICK_LOOK_S
    driver.rows = [{"name": "a", "state": "waiting", "waiting_s": 4.0}]
    allocator.look()
    assert allocator.look_every_s == SLOW_LOOK_S
    allocator.cancel([NAME], 0.0)
    assert allocator.look_every_s == QUICK_LOOK_S


def test_a_cluster_that_never_answered_is_a_wrong_address_and_one_that_did_is_away(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver
) -> None:
    """Mutation: a head of Ray that is restarted costs all workers."""
    allocator = allocator_of()
    driver.error = PassingBackendError("no Ray cluster answers")
    with pytest.raises(PermanentBackendError, match="no Ray cluster answers"):
        allocator.look()
    driver.error = None
    allocator.look()
    driver.error = PassingBackendError("no Ray cluster answers")
    with pytest.raises(PassingBackendError):
        allocator.look()


def test_keys_that_a_killed_agent_left_are_removed(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver, tmp_path: Path
) -> None:
    names = (NAME, f"{NAME}.rank1", f"{LABEL}-ray-2")
    file, of_rank, other = (tmp_path / "agents/ray" / f"{name}.config" for name in names)
    file.parent.mkdir(parents=True)
    for each in (file, of_rank, other):
        each.touch()
    driver.rows = [{"name": NAME, "state": "ended", "waiting_s": 0, "gone": "failed", "reason": ""}]
    allocator_of().look()
    assert not file.exists()
    assert not of_rank.exists()
    assert other.exists()


def test_a_cluster_of_our_own_ends_when_nothing_is_left(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver
) -> None:
    """Mutation: somebody else's does, too."""
    allocator_of().clear()
    assert driver.asked == []
    allocator_of(address="start").clear()
    assert driver.asked == [("end", {})]


def test_its_end_ends_the_driver(
    allocator_of: Callable[..., RayAllocator], driver: ScriptedDriver
) -> None:
    allocator_of().close()
    assert driver.closed
    assert driver.asked == []
