"""The actor that holds a place on each of several nodes, with one agent on each.

Ray carries this module's code there by value, as that of :mod:`dispatcher.platforms.ray.holder`. Of
other modules it needs Ray alone, which is wherever actors run.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
from typing import Any

#: The namespace of the actors on the nodes: they are no allocations.
NODES = "bequeath-nodes"

#: Beyond a grace, seconds in which the actors on the nodes say how they have ended.
BEYOND_GRACE_S = 5.0

#: Seconds between two looks at what the actors on the nodes have answered.
LOOK_S = 0.2

#: Ends that are no fault, and say nothing about the others.
_PLAIN = ("finished", "cancelled")


class Crew:
    """Holds a place on each of several nodes until the agent on the first has ended. An actor.

    The nodes are those of a placement group, and all on them are actors of this one: Ray ends all
    of it with this one, whatever ends that.

    Args:
        order: as :class:`RayDriver` got it.
        options: of the actor on each node, as Ray takes them.
        holder: the class of these actors.
    """

    def __init__(self, order: dict[str, Any], options: dict[str, Any], holder: Any) -> None:
        self._order = order
        self._ray = importlib.import_module("ray")
        self._stopped = False
        self._where: dict[str, Any] | None = None
        self._outcome: dict[str, Any] | None = None
        self._members = self._gather(options, holder)
        threading.Thread(target=self._run, name="nodes", daemon=True).start()

    async def where(self) -> dict[str, Any]:
        """Say where the agents are, once all have a place, and when they have to end."""
        while self._where is None:
            await asyncio.sleep(0.1)
        return self._where

    async def watch(self) -> dict[str, Any]:
        """Wait for the end of the agents, and say how it was."""
        while self._outcome is None:
            await asyncio.sleep(0.1)
        return self._outcome

    async def tell(self, config: str) -> None:
        """Hand its configuration to the agent that speaks with the head."""
        self._members[0].tell.remote(config)

    async def stop(self, grace_s: float) -> None:
        """Ask all agents to end, and kill them after a grace."""
        self._stopped = True
        for member in self._members:
            member.stop.remote(grace_s)

    def _gather(self, options: dict[str, Any], holder: Any) -> list[Any]:
        """Ask for the places, each on a node of its own, and for the actors there."""
        order, count = self._order, self._order["nodes"]
        group = self._ray.util.placement_group([bundle_of(options)] * count, "STRICT_SPREAD")
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        remote = self._ray.remote(**options)(holder)
        return [
            remote.options(
                name=f"{order['name']}/{rank}",
                namespace=NODES,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=strategies.PlacementGroupSchedulingStrategy(group, rank),
            ).remote(order_of_rank(order, rank))
            for rank in range(count)
        ]

    def _run(self) -> None:
        try:
            self._outcome = self._hold()
        except Exception as error:  # noqa: BLE001 - the top of this thread: whoever watches hears it
            self._outcome = {"gone": "failed", "reason": f"{type(error).__name__}: {error}"}
        time.sleep(self._order["linger_s"])  # so that whoever watches gets its answer
        os._exit(0)

    def _hold(self) -> dict[str, Any]:
        """Wait until one has ended in a way that ends all, and say how that was."""
        order, asked = self._order, dict[Any, tuple[int, str]]()
        for rank, member in enumerate(self._members):
            asked[member.where.remote()] = (rank, "where")
            asked[member.watch.remote()] = (rank, "watch")
        places: dict[int, dict[str, Any]] = {}
        ends: dict[int, dict[str, Any]] = {}
        give_up = float("inf")
        while len(ends) < len(self._members) and time.monotonic() < give_up:
            done, _ = self._ray.wait(list(asked), num_returns=1, timeout=LOOK_S)
            for ref in done:
                rank, question = asked.pop(ref)
                try:
                    answer = self._ray.get(ref)
                except self._ray.exceptions.RayError as error:
                    if type(error).__name__ == "ActorUnavailableError":  # it lives
                        asked[getattr(self._members[rank], question).remote()] = (rank, question)
                    else:
                        ends.setdefault(rank, died(error))
                    continue
                (places if question == "where" else ends).setdefault(rank, answer)
            if self._where is None and len(places) == len(self._members):
                self._where = _together(list(places.values()))
            if order.get("each_ends"):
                continue  # a look at all nodes: none has to wait for another one
            if give_up == float("inf") and (0 in ends or _worst(ends) is not None):
                give_up = time.monotonic() + self._end_others(ends) + BEYOND_GRACE_S
        return _worst(ends) or ends.get(0) or {"gone": "cancelled", "reason": ""}

    def _end_others(self, ends: dict[int, dict[str, Any]]) -> float:
        """Ask those that have not ended to do so; the grace that they have (seconds)."""
        grace_s: float = self._order["grace_s"]
        if not self._stopped:
            for rank, member in enumerate(self._members):
                if rank not in ends:
                    member.stop.remote(grace_s)
        return grace_s


def bundle_of(options: dict[str, Any]) -> dict[str, float]:
    """The resources of one node of a placement group, for an actor with these options."""
    bundle = {
        "CPU": options.get("num_cpus", 0),
        "GPU": options.get("num_gpus", 0),
        "memory": options.get("memory", 0),
        **options.get("resources", {}),
    }
    if "accelerator_type" in options:
        bundle[f"accelerator_type:{options['accelerator_type']}"] = 0.001
    kept = {name: float(amount) for name, amount in bundle.items() if amount}
    return kept or {"CPU": 0.001}  # Ray takes none without


def order_of_rank(order: dict[str, Any], rank: int) -> dict[str, Any]:
    """The order of the actor on one node: its agent reads its rank from its environment."""
    own = {**order, "environment": {**order["environment"], "BEQUEATH_RANK": str(rank)}}
    if rank:
        own["name"] = f"{order['name']}.rank{rank}"
        own["log"] = order["log"].removesuffix(".log") + f".rank{rank}.log"
    return own


def died(error: Exception) -> dict[str, Any]:
    """An end that Ray has words for, which a driver reads."""
    preempted = bool(getattr(error, "preempted", False))
    return {"died": type(error).__name__, "text": str(error), "preempted": preempted}


def _worst(ends: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """The first end that was none of its own will."""
    return next((end for end in ends.values() if end.get("gone") not in _PLAIN), None)


def _together(places: list[dict[str, Any]]) -> dict[str, Any]:
    """The places of all of them, and when the first has to end."""
    ends = [place["ends_in_s"] for place in places if place["ends_in_s"] is not None]
    names = dict.fromkeys(place["place"] for place in places)
    nodes = [node for place in places for node in place.get("nodes", [])]
    together = {"place": ", ".join(names), "nodes": nodes, "pid": os.getpid()}
    return {**together, "ends_in_s": min(ends, default=None)}
