"""A program that talks with Ray for a head that has none: questions and answers are JSON lines.

It is run by a Python that has Ray, of any version from 3.9 on, so that it needs the standard
library alone. Its arguments are the files of the actors, :mod:`dispatcher.platforms.ray.holder` and
:mod:`dispatcher.platforms.ray.crew`. Whatever Ray prints goes to stderr.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
from typing import Any

#: Seconds that answers of actors are waited for which a driver before this one has left.
ANSWER_S = 1.0

#: An actor may be missing from Ray's list for so long (seconds) before Ray says why, or lists it.
LAG_S = 5.0

#: Beyond a grace, seconds after which an actor that has not ended by itself is killed.
BEYOND_GRACE_S = 5.0

#: States of actors without a place.
_PENDING = ("DEPENDENCIES_UNREADY", "PENDING_CREATION")

#: Why actors wait is asked so often (seconds), where any does.
WHY_S = 15.0

#: The end of an actor is listed for so long (seconds).
KEPT_S = 600.0

#: Texts by which Ray says how an actor has died, and our word for it.
_ENDS = (
    ("node was preempted", "preempted"),
    ("killed by `ray.kill`", "cancelled"),
    ("NODE_OUT_OF_MEMORY", "out of memory"),
    ("low on memory", "out of memory"),
    ("node has died", "node lost"),
)


class NoAnswer(Exception):
    """A question that cannot be answered. ``passing``: it may be, later."""

    def __init__(self, text: str, *, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


class HeldActor:
    """One actor, as far as this driver knows it."""

    def __init__(self, handle: Any, *, fresh: bool) -> None:
        self.handle = handle
        self.fresh = self.waits = fresh  # ordered by this driver, and waits until it answers
        self.where_ref = handle.where.remote()
        self.watch_ref = handle.watch.remote()
        self.where: dict[str, Any] | None = None
        self.at = self.since = time.monotonic()
        self.end: dict[str, Any] | None = None
        self.ended_at = 0.0
        self.unlisted_at: float | None = None
        self.kill_at: float | None = None


class RayDriver:
    """Answers the questions, each by the method of its name.

    Args:
        holder: the class of actors.
        crew: that of actors on several nodes.
        news: the module with what Ray knows of nodes to come and to go.
    """

    def __init__(self, holder: Any, crew: Any, news: Any) -> None:
        self._holder = holder
        self._crew = crew
        self._news = news
        self._ray: Any = None
        self._is_there = False  # a cluster, with which this is connected
        self._local: Any = None  # a cluster of our own; None: it is somebody else's
        self._init: dict[str, Any] = {}
        self._held: dict[str, HeldActor] = {}
        self._why: dict[str, Any] = {}  # why those wait that do
        self._why_until = float("-inf")  # it is known well enough (monotonic)

    def connect(
        self,
        address: str,
        namespace: str,
        runtime_env: dict[str, Any],
        local: dict[str, str] | None = None,
    ) -> None:
        """Connect with a cluster. One of our own is started by the first order.

        Args:
            address: of the cluster, as Ray takes it.
            namespace: of all actors.
            runtime_env: of all actors, as Ray takes it.
            local: the arguments of :class:`LocalCluster`, if the cluster is one of our own.
        """
        if local is not None:
            self._local = loaded(local["program"]).LocalCluster(**local)
            self._local.prepare()
        try:
            self._ray = importlib.import_module("ray")
        except ImportError as error:
            text = f"{sys.executable} has no Ray ({error})"
            raise NoAnswer(text, passing=False) from error
        self._init = {"namespace": namespace, "log_to_driver": False, "runtime_env": runtime_env}
        runs = address if self._local is None else self._local.address()
        if runs is not None:
            self._join(runs)

    def _join(self, address: str) -> None:
        try:
            self._ray.init(address=address, **self._init)
        except Exception as error:
            text = f"no Ray cluster answers at {address!r}: {_plain(str(error))}"
            raise NoAnswer(text, passing="mismatch" not in str(error)) from error
        self._is_there = True

    def end(self) -> None:
        """End the cluster of our own."""
        if self._is_there:
            self._ray.shutdown()
        self._is_there = False
        self._local.end()

    def submit(
        self, name: str, options: dict[str, Any], order: dict[str, Any], lease_s: float = 0.0
    ) -> None:
        """Ask for an actor, unless there is one of that name.

        Args:
            name: of the actor.
            options: of the actor, as Ray takes them.
            order: for the actor.
            lease_s: a cluster of our own ends when nobody has used it for so long (seconds).
        """
        if not self._is_there:
            self._join(self._local.start(lease_s))
        if name in self._names():
            return
        try:
            remote = self._ray.remote(**options)(self._holder)
            parts: tuple[Any, ...] = ()
            if order.get("nodes", 1) > 1:
                remote = self._ray.remote(num_cpus=0)(self._crew)
                parts = (options, self._holder)
            named = remote.options(
                name=name, lifetime="detached", max_restarts=0, max_task_retries=0
            )
            self._held[name] = HeldActor(named.remote(order, *parts), fresh=True)
        except (ValueError, TypeError) as error:
            if name not in self._names():  # another driver's, which came a moment before
                raise NoAnswer(_plain(str(error)), passing=False) from error

    def look(self, prefix: str) -> dict[str, Any]:
        """List all actors whose names begin so, and what nodes there are if any of them waits."""
        there = {name for name in self._names() if name.startswith(prefix)}
        self._adopt(there)
        self._take_answers()
        pending = self._pending_names()
        now = time.monotonic()
        rows = []
        for name, held in list(self._held.items()):
            if held.end is not None and now - held.ended_at > KEPT_S:
                del self._held[name]
            elif name.startswith(prefix):
                self._miss(held, None if name in there else now)
                held.waits = held.fresh or name in pending
                rows.append(_row(name, held))
        if any(row["state"] == "running" for row in rows):
            self._news.hurry(rows, self._ray)
        if any(row["state"] == "waiting" for row in rows):
            if now >= self._why_until:  # some requests, and nothing that has to be known at once
                news = self._news.of_autoscaler(self._ray, ANSWER_S)
                self._why = {**self.describe(), "autoscaler": news}
                self._why_until = now + WHY_S
            return {"rows": rows, **self._why}
        return {"rows": rows}

    def describe(self) -> dict[str, Any]:
        """Say what the cluster has, and what of it is free."""
        ray = self._ray
        if not self._is_there:
            return {"version": ray.__version__, "nodes": [], "addresses": [], "free": {}}
        alive = [node for node in ray.nodes() if node["Alive"]]
        return {
            "version": ray.__version__,
            "nodes": [node["Resources"] for node in alive],
            "addresses": [node.get("NodeManagerAddress", "") for node in alive],
            "free": ray.available_resources(),
        }

    def tell(self, name: str, config: str) -> None:
        """Hand an agent's configuration to its actor."""
        held = self._held.get(name)
        if held is None:
            return
        done = held.handle.tell.remote(config)
        if held.where is not None:  # else it is done when the actor begins
            self._ray.get(done, timeout=ANSWER_S * 10)

    def cancel(self, names: list[str], grace_s: float) -> None:
        """End actors. Those that have no place yet, and what is left after the grace, at once."""
        now = time.monotonic()
        self._adopt(self._names() & set(names))
        for name in names:
            held = self._held.get(name)
            if held is None or held.end is not None:
                continue
            if grace_s > 0 and held.where is not None:
                held.handle.stop.remote(grace_s)
                until = now + grace_s + BEYOND_GRACE_S
                held.kill_at = until if held.kill_at is None else min(held.kill_at, until)
            else:
                self._ray.kill(held.handle, no_restart=True)

    # -- parts -----------------------------------------------------------------------------------

    def _names(self) -> set[str]:
        if not self._is_there:
            return set()
        return set(self._ray.util.list_named_actors())

    def _adopt(self, names: set[str]) -> None:
        """Take up actors of a driver before this one."""
        asked = []
        for name in names - set(self._held):
            try:
                held = self._held[name] = HeldActor(self._ray.get_actor(name), fresh=False)
            except ValueError:  # it has gone meanwhile
                continue
            asked.append(held.where_ref)
        if asked:
            self._ray.wait(asked, num_returns=len(asked), timeout=ANSWER_S)

    def _take_answers(self) -> None:
        """Take in what actors have answered, and how they have ended."""
        asked = {held.watch_ref: held for held in self._held.values() if held.end is None}
        asked.update(
            (held.where_ref, held)
            for held in self._held.values()
            if held.end is None and held.where is None
        )
        if not asked:
            return
        done, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0.01)
        for ref in done:
            held = asked[ref]
            if held.end is None:
                self._take(held, ref)
        now = time.monotonic()
        for held in self._held.values():
            if held.end is None and held.kill_at is not None and now >= held.kill_at:
                self._ray.kill(held.handle, no_restart=True)

    def _take(self, held: HeldActor, ref: Any) -> None:
        try:
            answer = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            if type(error).__name__ == "ActorUnavailableError":  # asked again, since it lives
                held.watch_ref = held.handle.watch.remote()
                held.where_ref = held.handle.where.remote()
            else:
                preempted = bool(getattr(error, "preempted", False))
                self._ended(held, _end_of(type(error).__name__, str(error), preempted))
            return
        if ref == held.where_ref:
            held.where, held.at = answer, time.monotonic()
        elif ref == held.watch_ref:
            if "died" in answer:  # one of several nodes
                answer = _end_of(answer["died"], answer["text"], answer["preempted"])
            self._ended(held, answer)
            self._ray.kill(held.handle, no_restart=True)

    def _miss(self, held: HeldActor, now: float | None) -> None:
        """Note since when Ray does not list an actor: why follows a moment later, mostly."""
        if now is None or held.unlisted_at is None:
            held.unlisted_at = now
        elif held.end is None and now - held.unlisted_at > LAG_S:
            self._ended(held, {"gone": None, "reason": "Ray does not list its actor"})

    @staticmethod
    def _ended(held: HeldActor, end: dict[str, Any]) -> None:
        held.end, held.ended_at = end, time.monotonic()

    def _pending_names(self) -> set[str]:
        """The names of actors without a place yet, as far as they must be asked for, and Ray tells:
        those of a driver before this one that do not answer."""
        if all(held.fresh or held.end or held.where for held in self._held.values()):
            return set()
        try:
            state = importlib.import_module("ray._private.state")
            tables = [state.actors(actor_state_name=each) for each in _PENDING]
            names = {actor["Name"] for table in tables for actor in table.values()}
            return {name.partition("/")[0] for name in names}  # the first of several nodes
        except (ImportError, AttributeError, KeyError, TypeError):
            return set()  # it is no public interface


def _row(name: str, held: HeldActor) -> dict[str, Any]:
    """An actor, for whoever looks."""
    now = time.monotonic()
    row: dict[str, Any] = {"name": name, "waiting_s": now - held.since}
    if held.end is not None:
        return {**row, "state": "ended", **held.end}
    if held.where is None:
        return {**row, "state": "waiting" if held.waits else "unknown"}
    if held.unlisted_at is not None:
        return {**row, "state": "unknown"}
    left_s = held.where["ends_in_s"]
    if left_s is not None:
        row["ends_in_s"] = left_s - (now - held.at)
    nodes = held.where.get("nodes", [])
    return {**row, "state": "running", "place": held.where["place"], "nodes": nodes}


def _end_of(kind: str, error: str, preempted: bool) -> dict[str, Any]:
    """How an actor ended, by the error of a question to it."""
    text = _plain(error) or kind
    if preempted:
        return {"gone": "preempted", "reason": text}
    if kind in ("RuntimeEnvSetupError", "ActorUnschedulableError"):
        return {"gone": "never", "reason": text}
    gone = next((gone for part, gone in _ENDS if part in error), "failed")
    return {"gone": gone, "reason": text}


#: Lines of Ray's that say what is known, or nothing.
_KNOWN = (
    "The actor died unexpectedly before finishing this task.",
    *("class_name:", "actor_id:", "pid:", "name:", "namespace:", "ip:"),
)


def _plain(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith(_KNOWN))
    return text if len(text) < 500 else f"{text[:300]} … {text[-200:]}"


def answer(driver: RayDriver, question: dict[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    number, method = question.pop("id"), question.pop("ask")
    try:
        return {"id": number, "answer": getattr(driver, method)(**question)}
    except Exception as error:  # noqa: BLE001 - the top of this program: it goes on
        passing = getattr(error, "passing", None)  # of our own: NoAnswer, NoCluster
        kind = "" if passing is not None else f"{type(error).__name__}: "
        text = f"{kind}{_plain(str(error))}"
        return {"id": number, "error": text, "passing": passing is not False}


def loaded(path: str) -> Any:
    """Load a file, as no module that could be imported: Ray carries the code of such a one's
    classes by value."""
    spec = importlib.util.spec_from_file_location(f"{os.path.basename(path)}_beside_us", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer until nobody asks any more."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    holder, crew, news = (loaded(path) for path in sys.argv[1:4])
    driver = RayDriver(holder.Holder, crew.Crew, news)
    for line in sys.stdin:
        print(json.dumps(answer(driver, json.loads(line))), file=out, flush=True)
    os._exit(0)  # actors are detached: nothing is to be tidied


if __name__ == "__main__":
    main()
