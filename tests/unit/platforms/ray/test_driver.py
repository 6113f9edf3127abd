"""What the driver program makes of a Ray that is a script."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dispatcher.platforms.ray import driver as program
from dispatcher.platforms.ray import holder as actor_program
from dispatcher.platforms.ray import node_news
from dispatcher.platforms.ray.crew import Crew
from dispatcher.platforms.ray.driver import RayDriver, loaded
from dispatcher.platforms.ray.holder import Holder
from tests.support.processes import wait_until


class RayError(Exception):
    """As Ray's."""


class ActorDiedError(RayError):
    preempted = False


class ActorUnavailableError(RayError):
    pass


class Ref:
    """The answer to a question to an actor: none yet, an object, or an error."""

    def __init__(self) -> None:
        self.answer: Any = None


class Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self._actor, self._name = actor, name

    def remote(self, *arguments: Any) -> Ref:
        self._actor.calls.append((self._name, arguments))
        ref = Ref()
        self._actor.refs.setdefault(self._name, []).append(ref)
        return ref


class Actor:
    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.refs: dict[str, list[Ref]] = {}
        self.killed = False

    def __getattr__(self, name: str) -> Method:
        if name.startswith("_"):
            raise AttributeError(name)
        return Method(self, name)

    def says(self, method: str, answer: Any) -> None:
        self.refs[method][-1].answer = answer


class ScriptedRay(ModuleType):
    """As much of Ray as the driver uses."""

    __version__ = "2.60.0"

    def __init__(self) -> None:
        super().__init__("ray")
        self.actors: dict[str, Actor] = {}
        self.options: list[dict[str, Any]] = []
        self.parts: list[tuple[Any, ...]] = []
        self.util = SimpleNamespace(list_named_actors=lambda: list(self.actors))
        self.exceptions = SimpleNamespace(RayError=RayError)
        self.refusal: Exception | None = None

    def init(self, **keys: Any) -> None:
        if self.refusal is not None:
            raise self.refusal

    def remote(self, **options: Any) -> Any:
        if self.refusal is not None:
            raise self.refusal
        return lambda _class: SimpleNamespace(options=lambda **more: self._made(options | more))

    def _made(self, options: dict[str, Any]) -> Any:
        def begin(_order: Any, *parts: Any) -> Actor:
            self.options.append(options)
            self.parts.append(parts)
            return self.actors.setdefault(options["name"], Actor(options["name"]))

        return SimpleNamespace(remote=begin)

    def get_actor(self, name: str) -> Actor:
        if name not in self.actors:
            raise ValueError(name)
        return self.actors[name]

    def wait(self, refs: list[Ref], **_: Any) -> tuple[list[Ref], list[Ref]]:
        done = [ref for ref in refs if ref.answer is not None]
        return done, [ref for ref in refs if ref not in done]

    def get(self, ref: Ref, **_: Any) -> Any:
        if isinstance(ref.answer, Exception):
            raise ref.answer
        return ref.answer

    def kill(self, actor: Actor, *, no_restart: bool) -> None:
        assert no_restart
        actor.killed = True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {}}]

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 0.0}


HERE = {"place": "n1", "ends_in_s": None, "pid": 7}
ORDER: dict[str, Any] = {"name": "lab-1"}


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    one = ScriptedRay()
    monkeypatch.setitem(sys.modules, "ray", one)
    return one


@pytest.fixture
def driver(ray: ScriptedRay) -> RayDriver:
    one = RayDriver(Holder, Crew, node_news)
    one.connect("auto", "bequeath", {})
    return one


def rows(driver: RayDriver) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in driver.look("lab-")["rows"]}


def test_the_life_of_an_actor(driver: RayDriver, ray: ScriptedRay) -> None:
    """Mutation: Ray starts it again by itself."""
    driver.submit("lab-1", {"num_cpus": 2}, ORDER)
    (options,) = ray.options
    assert options["num_cpus"] == 2
    assert options["lifetime"] == "detached"
    assert (options["max_restarts"], options["max_task_retries"]) == (0, 0)
    looked = driver.look("lab-")
    assert looked["rows"][0]["state"] == "waiting"
    assert (looked["nodes"], looked["free"]) == ([{"CPU": 2.0}], {"CPU": 0.0})
    actor = ray.actors["lab-1"]
    actor.says("where", {**HERE, "ends_in_s": 50.0})
    row = rows(driver)["lab-1"]
    assert (row["state"], row["place"]) == ("running", "n1")
    assert 49 < row["ends_in_s"] <= 50
    assert "nodes" not in driver.look("lab-"), "nobody asks why"
    actor.says("watch", {"gone": "finished", "reason": ""})
    row = rows(driver)["lab-1"]
    assert (row["state"], row["gone"]) == ("ended", "finished")
    assert actor.killed, "its place is free at once"


class ScriptedCluster:
    """A cluster of our own."""

    def __init__(self, **_: str) -> None:
        self.runs = False
        self.leases: list[float] = []

    def prepare(self) -> None: ...

    def address(self) -> str | None:
        return "127.0.0.1:4711" if self.runs else None

    def start(self, lease_s: float) -> str:
        self.runs = True
        self.leases.append(lease_s)
        return "127.0.0.1:4711"

    def end(self) -> None:
        self.runs = False


def test_a_cluster_of_our_own_is_started_by_the_first_order(
    ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a look at what a dead head has left starts one."""
    made = ScriptedCluster()
    joined: list[Any] = []
    beside = SimpleNamespace(LocalCluster=lambda **_: made)
    monkeypatch.setattr(program, "loaded", lambda path: beside)
    monkeypatch.setattr(ray, "init", lambda **keys: joined.append(keys["address"]))
    monkeypatch.setattr(ray, "shutdown", lambda: joined.append("over"), raising=False)
    driver = RayDriver(Holder, Crew, node_news)
    driver.connect("start", "bequeath", {}, {"folder": "/f", "program": "/p"})
    assert driver.look("lab-") == {"rows": []}
    assert (driver.describe()["nodes"], driver.describe()["free"]) == ([], {})
    driver.cancel(["lab-1"], 0.0)
    assert joined == []
    driver.submit("lab-1", {}, ORDER, lease_s=30.0)
    driver.submit("lab-2", {}, ORDER, lease_s=30.0)
    assert (joined, made.leases) == (["127.0.0.1:4711"], [30.0])
    assert set(rows(driver)) == {"lab-1", "lab-2"}
    again = RayDriver(Holder, Crew, node_news)
    again.connect("start", "bequeath", {}, {"folder": "/f", "program": "/p"})
    assert joined == 2 * ["127.0.0.1:4711"], "the driver of the next head joins it"
    driver.end()
    assert joined[-1] == "over"
    assert not made.runs


def test_a_cluster_that_cannot_be_started_says_why(ray: ScriptedRay) -> None:
    class NoCluster(Exception):  # as it comes from a file that nobody imports
        passing = False

    driver = RayDriver(Holder, Crew, node_news)
    monkey = SimpleNamespace(describe=lambda: (_ for _ in ()).throw(NoCluster("no room")))
    assert program.answer(monkey, {"id": 1, "ask": "describe"}) == {  # type: ignore[arg-type]
        "id": 1,
        "error": "no room",
        "passing": False,
    }
    assert driver.describe


def test_a_node_that_is_to_go_is_an_end_of_its_places(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: trials learn of it when the node is gone."""
    ends: dict[str, int] = {}
    state = SimpleNamespace(get_draining_nodes=lambda: ends)
    monkeypatch.setitem(sys.modules, "ray._private.state", SimpleNamespace(state=state))
    for name, node, left_s in (("lab-1", "4d2a", None), ("lab-2", "77", 5.0), ("lab-3", "9", None)):
        driver.submit(name, {}, ORDER)
        ray.actors[name].says("where", {**HERE, "nodes": [node], "ends_in_s": left_s})
    assert "ends_in_s" not in rows(driver)["lab-1"]
    ends |= {"4d2a": int((time.time() + 60) * 1000), "77": int((time.time() + 60) * 1000), "9": 0}
    looked = rows(driver)
    assert 55 < looked["lab-1"]["ends_in_s"] <= 60
    assert looked["lab-2"]["ends_in_s"] <= 5.0, "its wall time comes first"
    assert "ends_in_s" not in looked["lab-3"], "nobody knows when"
    ends["4d2a"] = 1000
    assert rows(driver)["lab-1"]["ends_in_s"] == 0.0


def test_the_same_name_is_asked_for_once(driver: RayDriver, ray: ScriptedRay) -> None:
    driver.submit("lab-1", {}, ORDER)
    driver.submit("lab-1", {}, ORDER)
    assert len(ray.options) == 1


def test_an_option_that_ray_refuses_is_not_asked_for_again(
    driver: RayDriver, ray: ScriptedRay
) -> None:
    ray.refusal = ValueError("Invalid option keyword glow")
    answer = program.answer(
        driver, {"id": 4, "ask": "submit", "name": "lab-1", "options": {}, "order": ORDER}
    )
    assert answer == {"id": 4, "error": "Invalid option keyword glow", "passing": False}


def test_one_that_waits_in_rays_table_waits(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two questions for all of them. Mutation: one for each, at each look."""
    ray.actors = {f"lab-{number}": Actor(f"lab-{number}") for number in range(9)}
    asked: list[str] = []

    def actors(actor_state_name: str) -> dict[str, dict[str, str]]:
        asked.append(actor_state_name)
        return {"4d2a": {"Name": "lab-3"}} if actor_state_name == "PENDING_CREATION" else {}

    monkeypatch.setitem(sys.modules, "ray._private.state", SimpleNamespace(actors=actors))
    states = {name: row["state"] for name, row in rows(driver).items()}
    assert states.pop("lab-3") == "waiting"
    assert set(states.values()) == {"unknown"}
    assert len(asked) == 2
    for actor in ray.actors.values():
        actor.says("where", HERE)
    rows(driver)
    assert len(asked) == 2, "nobody asks where all have answered"


def test_one_of_several_nodes_is_an_actor_that_has_them(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no place itself. Mutation: it waits while Ray says so of its first node alone."""
    driver.submit("lab-1", {"num_cpus": 2}, {**ORDER, "nodes": 3})
    assert ray.options[0]["num_cpus"] == 0
    assert ray.options[0]["lifetime"] == "detached"
    assert ray.parts == [({"num_cpus": 2}, Holder)]
    died = {"died": "ActorDiedError", "text": "its node has died.", "preempted": False}
    ray.actors["lab-1"].says("watch", died)
    row = rows(driver)["lab-1"]
    assert (row["gone"], row["reason"]) == ("node lost", "its node has died.")
    ray.actors["lab-2"] = Actor("lab-2")
    pending = {"4d2a": {"Name": "lab-2/0"}, "4d2b": {"Name": "lab-2/1"}}
    state = SimpleNamespace(actors=lambda actor_state_name: pending)
    monkeypatch.setitem(sys.modules, "ray._private.state", state)
    assert rows(driver)["lab-2"]["state"] == "waiting"


def test_a_driver_takes_up_what_the_one_before_has_left(
    driver: RayDriver, ray: ScriptedRay
) -> None:
    """One that does not answer may wait, or be busy: nobody takes its place back for that."""
    ray.actors = {"lab-1": Actor("lab-1"), "lab-2": Actor("lab-2"), "other-1": Actor("other-1")}
    assert {name: row["state"] for name, row in rows(driver).items()} == {
        "lab-1": "unknown",
        "lab-2": "unknown",
    }
    ray.actors["lab-1"].says("where", HERE)
    assert rows(driver)["lab-1"]["state"] == "running"
    assert not ray.actors["other-1"].calls, "it is somebody else's"


@pytest.mark.parametrize(
    "text, gone",
    [
        ("The actor is dead because it was killed by `ray.kill`.", "cancelled"),
        ("The actor died because its node has died. Node Id: 4d2a", "node lost"),
        ("Node Id: 4d2a\n\tthe actor's node was preempted: spot", "preempted"),
        (
            "1 worker(s) were killed due to the node running low on memory. Memory on the node "
            f"(IP: 10.0.0.7) was 2.46GB used / 23.54GB limit. {'What to do about it. ' * 99}",
            "out of memory",
        ),
        (
            "Worker exit type: SYSTEM_ERROR. There are some potential root causes. (1) The process "
            "is killed by SIGKILL by OOM killer due to high memory usage.",
            "failed",
        ),
    ],
)
def test_how_an_actor_died_is_read_from_rays_words(
    text: str, gone: str, driver: RayDriver, ray: ScriptedRay
) -> None:
    driver.submit("lab-1", {}, ORDER)
    head = "The actor died unexpectedly before finishing this task.\n\tclass_name: Holder\n"
    ray.actors["lab-1"].says("watch", ActorDiedError(head + text))
    row = rows(driver)["lab-1"]
    assert (row["state"], row["gone"]) == ("ended", gone)
    assert "class_name" not in row["reason"]
    assert not row["reason"].startswith("The actor died unexpectedly")


def test_one_that_cannot_be_reached_for_a_moment_lives(driver: RayDriver, ray: ScriptedRay) -> None:
    driver.submit("lab-1", {}, ORDER)
    actor = ray.actors["lab-1"]
    actor.says("where", HERE)
    rows(driver)
    actor.says("watch", ActorUnavailableError("unavailable"))
    assert rows(driver)["lab-1"]["state"] == "running"
    actor.says("watch", {"gone": "finished", "reason": ""})
    assert rows(driver)["lab-1"]["gone"] == "finished"


def test_what_ray_lists_no_more_has_ended(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at once: lists lag."""
    driver.submit("lab-1", {}, ORDER)
    ray.actors.clear()
    assert rows(driver)["lab-1"]["state"] == "waiting"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + program.LAG_S + 1)
    assert rows(driver)["lab-1"]["gone"] is None


def test_one_that_ray_lists_no_more_is_not_lost_before_ray_says_why(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it was listed. Mutation: a node that died is the fault of its agent."""
    driver.submit("lab-1", {}, ORDER)
    actor = ray.actors["lab-1"]
    actor.says("where", HERE)
    assert rows(driver)["lab-1"]["state"] == "running"
    ray.actors.clear()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3600)
    assert rows(driver)["lab-1"]["state"] == "unknown"
    monkeypatch.setattr(time, "monotonic", lambda: now + 3600 + program.LAG_S - 1)
    actor.says("watch", ActorDiedError("The actor died because its node has died."))
    assert rows(driver)["lab-1"]["gone"] == "node lost"


def test_the_actors_class_is_no_module_that_could_be_imported() -> None:
    """Else nodes would need it. Mutation: it is found by name."""
    there = loaded(str(actor_program.__file__)).Holder
    assert there.__name__ == "Holder"
    assert there.__module__ not in sys.modules


def test_what_has_ended_is_forgotten(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.submit("lab-1", {}, ORDER)
    ray.actors["lab-1"].says("watch", {"gone": "finished", "reason": ""})
    rows(driver)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + program.KEPT_S + 9)
    assert rows(driver) == {}


def test_a_grace_is_given_and_then_force(
    driver: RayDriver, ray: ScriptedRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits needs none."""
    for name in ("lab-1", "lab-2"):
        driver.submit(name, {}, ORDER)
    first, second = ray.actors.values()
    first.says("where", HERE)
    rows(driver)
    driver.cancel(["lab-1", "lab-2", "lab-3"], 10.0)
    assert ("stop", (10.0,)) in first.calls
    assert not first.killed
    assert second.killed
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 10 + program.BEYOND_GRACE_S)
    rows(driver)
    assert first.killed


def test_a_python_without_ray_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    answer = program.answer(
        RayDriver(Holder, Crew, node_news),
        {"id": 1, "ask": "connect", "address": "auto", "namespace": "", "runtime_env": {}},
    )
    assert "has no Ray" in answer["error"]
    assert not answer["passing"]


@pytest.mark.parametrize(
    "error, passing",
    [
        (ConnectionError("Could not find any running Ray instance."), True),
        (RuntimeError("Version mismatch: The cluster was started with: Ray: 2.9"), False),
    ],
)
def test_no_cluster_passes_and_another_version_does_not(
    error: Exception, passing: bool, ray: ScriptedRay
) -> None:
    ray.refusal = error
    with pytest.raises(program.NoAnswer, match=str(error)[:20]) as raised:
        RayDriver(Holder, Crew, node_news).connect("auto", "bequeath", {})
    assert raised.value.passing is passing


# -- what runs in the cluster ------------------------------------------------------------------


@pytest.fixture
def holder_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Holder]]:
    """An actor in this process, whose agent is a program of a line."""
    over = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda _code: over.set())

    def make(code: str, **keys: Any) -> Holder:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "agent.py").write_text(f"import os, signal, sys\n{code}\n")
        return Holder(
            {
                "name": "lab-1",
                "home": str(tmp_path / "home"),
                "config": base64.b64encode(b"its keys").decode(),
                "python": "",
                "arguments": [str(tmp_path / "home" / "agent.py")],
                "environment": {"PYTHONPATH": "/ours", "WHO": "ray"},
                "log": str(tmp_path / "home" / "log"),
                "wall_s": None,
                "grace_s": 60.0,
                "linger_s": 0.0,
                **keys,
            }
        )

    yield make
    assert over.wait(60.0), "it ends its process, which is this one"


def outcome(holder: Holder) -> Any:
    return asyncio.run(asyncio.wait_for(holder.watch(), 60))


def test_an_agent_gets_its_keys_and_variables(
    holder_of: Callable[..., Holder], tmp_path: Path
) -> None:
    """Mutation: a file that others can read."""
    code = (
        "print(open(sys.argv[1]).read(), oct(os.stat(sys.argv[1]).st_mode & 0o777), "
        "os.environ['WHO'], os.environ['PYTHONPATH'].split(':')[0], flush=True)"
    )
    assert outcome(holder_of(code)) == {"gone": "finished", "reason": ""}
    assert (tmp_path / "home/log").read_text() == "its keys 0o600 ray /ours\n"


def test_an_agent_has_a_session_of_its_own(holder_of: Callable[..., Holder]) -> None:
    """Linux shares CPU out by session: in that of Ray's daemons an agent waits for them. Mutation:
    no session."""
    end = outcome(holder_of("sys.exit(0 if os.getsid(0) == os.getpid() else 'it has none')"))
    assert end == {"gone": "finished", "reason": ""}


def test_an_agent_that_fails_says_its_last_line(holder_of: Callable[..., Holder]) -> None:
    end = outcome(holder_of("print('first'); sys.exit('no module named zmq')"))
    assert end["gone"] == "failed"
    assert end["reason"] == "the agent ended with status 1: no module named zmq"


def test_a_python_that_a_node_lacks_is_named(holder_of: Callable[..., Holder]) -> None:
    end = outcome(holder_of("", python="/nowhere/python"))
    assert end["gone"] == "failed"
    assert "/nowhere/python cannot be run there: No such file" in end["reason"]


def test_a_folder_that_a_node_does_not_see_is_named(
    holder_of: Callable[..., Holder], tmp_path: Path
) -> None:
    end = outcome(holder_of("", home=str(tmp_path / "nowhere")))
    assert end["gone"] == "failed"
    assert f"does not see the folder {tmp_path}/nowhere" in end["reason"]


def test_the_wall_time_ends_it(holder_of: Callable[..., Holder]) -> None:
    holder = holder_of("signal.pause()", wall_s=1.0)
    assert asyncio.run(holder.where())["ends_in_s"] <= 1.0
    assert outcome(holder)["gone"] == "wall time"


def test_a_stop_is_asked_for_and_then_forced(
    holder_of: Callable[..., Holder], tmp_path: Path
) -> None:
    code = "signal.signal(15, lambda *_: print('asked', flush=True))\n"
    holder = holder_of(code + "print('up', flush=True)\nwhile True: signal.pause()")
    log = tmp_path / "home/log"
    wait_until(lambda: log.exists() and "up" in log.read_text(), "the agent runs")
    asyncio.run(holder.stop(1.0))
    assert outcome(holder)["gone"] == "cancelled"
    assert log.read_text() == "up\nasked\n"


def test_a_new_head_is_told_while_the_agent_lives(
    holder_of: Callable[..., Holder], tmp_path: Path
) -> None:
    """Mutation: a file with keys where there is no agent any more."""
    holder = holder_of("signal.pause()")
    file = tmp_path / "home/lab-1.config"
    wait_until(file.exists, "the agent has its keys")
    asyncio.run(holder.tell(base64.b64encode(b"new keys").decode()))
    assert file.read_bytes() == b"new keys"
    asyncio.run(holder.stop(0.0))
    outcome(holder)
    assert not file.exists(), "an agent that was killed has left it"
    asyncio.run(holder.tell(base64.b64encode(b"newer keys").decode()))
    assert not file.exists()
