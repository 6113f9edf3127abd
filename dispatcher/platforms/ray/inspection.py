"""A look at a cluster before anything starts there: is it there, and has it what is asked for?"""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.findings import Finding, Severity
from dispatcher.platforms.clusters.inspection import inspect_ways
from dispatcher.platforms.ray.conversation import Conversation
from dispatcher.platforms.ray.section import RayServiceConfig
from dispatcher.platforms.ray.waiting import fits, listed

#: The keys of resources that Ray has names for.
_KEYS = {"CPU": ("cpus",), "GPU": ("gpus",), "memory": ("memory",)}


def inspect_cluster(section: RayServiceConfig, conversation: Conversation) -> Iterator[Finding]:
    """Ask the cluster what it has: nothing is asked for.

    Args:
        section: the service's part of the experiment file.
        conversation: with a driver, which is ended.

    Raises:
        BackendError: there is no Ray here, or no cluster there.
    """
    try:
        answer = conversation.ask("describe")
    finally:
        conversation.close()
    if section.starts:
        text = f"Ray {answer['version']}; a cluster of this machine alone is started for it"
        yield Finding("cluster", Severity.OK, text)
        return
    nodes = answer["nodes"]
    having = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    yield Finding("cluster", Severity.OK, f"Ray {answer['version']} at {section.address}, {having}")
    yield from inspect_ways(section, answer["addresses"])
    asked = listed(section.demand)
    if any(fits(section.demand, node) for node in nodes):
        yield Finding("actor", Severity.OK, f"a node has {asked}")
    else:
        text = f"no node has {asked}: an actor waits until one comes"
        short = [
            name
            for name, wanted in section.demand.items()
            if not any(fits({name: wanted}, node) for node in nodes)
        ]
        keys = tuple(_KEYS.get(name, ("actorResources", name)) for name in short or section.demand)
        yield Finding("actor", Severity.NOTE, text, "an autoscaler may bring one", keys)
