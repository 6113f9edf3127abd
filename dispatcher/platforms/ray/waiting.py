"""Why an actor waits, by what nodes have and what of it is free: Ray itself does not say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def reason_of_wait(
    demand: Mapping[str, float],
    nodes: Sequence[Mapping[str, float]],
    free: Mapping[str, float],
    count: int = 1,
) -> str:
    """Say why an actor waits.

    Args:
        demand: what it asks for on each of its nodes, by Ray's names.
        nodes: what each living node has.
        free: what of it is free, of all nodes together.
        count: of its nodes.
    """
    asked = listed(demand)
    if not nodes:
        return "the cluster has no node"
    fitting = sum(fits(demand, node) for node in nodes)
    if not fitting:
        return f"no node of the cluster has {asked}; Ray waits for one that has"
    if fitting < count:
        has = "1 node" if fitting == 1 else f"{fitting} nodes"
        return f"the cluster has {has} with {asked}, and it asks for {count}; Ray waits for more"
    if count > 1:
        asked = f"{count} nodes with {asked}"
    for name, amount in demand.items():
        left = free.get(name, 0.0)
        if left < amount * count:
            whole = sum(node.get(name, 0.0) for node in nodes)
            return (
                f"{_amount(name, left)} of {_amount(name, whole)} {name} are free; "
                f"it asks for {asked}"
            )
    return (
        f"Ray has not placed it yet; it asks for {asked}" if asked else "Ray has not placed it yet"
    )


def reason_of_autoscaler(demand: Mapping[str, float], report: Mapping[str, Any]) -> str:
    """Say what the cluster's autoscaler reports of a request that waits, in its own words where it
    has any; empty if it reports nothing, or there is none.

    Args:
        demand: what is asked for, by Ray's names.
        report: as the driver has it.
    """
    if any(dict(each) == dict(demand) for each in report["never"]):
        asked = "{" + ", ".join(f"'{name}': {n:g}" for name, n in demand.items()) + "}"
        return f"the autoscaler: no available node types can fulfill resource requests {asked}"
    for kind, count, reason in report["failed"]:
        return f"the autoscaler could not start {count} {kind}: {reason}"
    for kind, count in report["coming"]:
        return f"the autoscaler starts {count} {kind}"
    return f"the autoscaler: {report['error']}" if report["error"] else ""


def fits(demand: Mapping[str, float], node: Mapping[str, float]) -> bool:
    """Whether a node has as much, free or not."""
    return all(node.get(name, 0.0) >= amount for name, amount in demand.items())


def listed(demand: Mapping[str, float]) -> str:
    """A demand as text."""
    return ", ".join(f"{_amount(name, amount)} {name}" for name, amount in demand.items())


def _amount(name: str, amount: float) -> str:
    if "memory" in name:
        return f"{amount / 2**30:.1f} GiB"
    return f"{amount:g}"
