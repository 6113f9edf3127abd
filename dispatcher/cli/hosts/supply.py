"""The wheels that a machine lacks, for ``hosts check``; fetched, so that the head has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.ssh.inspecting import Supplied
from dispatcher.wheelhouse import HostPython, WheelCache, WheelsMissing, plan


def supply(answer: Mapping[str, Any]) -> Supplied:
    """Plan and fetch the wheels that a machine lacks. Blocks while pip downloads.

    Args:
        answer: the report of the machine's Python on itself.
    """
    host = host_of(answer)
    modules = answer["modules"]
    troubles = {name: str(each.get("trouble", "")) for name, each in modules.items()}
    versions = {name: each["version"] for name, each in modules.items() if "version" in each}
    planned = plan(host, troubles, versions)
    problem = planned.problem(answer["executable"], host)
    if not planned.wheels:
        return Supplied(trouble=f"no wheel that we know fits {host}" if problem else "")
    try:
        WheelCache().get(planned.wheels.values(), host)
    except WheelsMissing as error:
        return Supplied(trouble=f"what would be brought {error.message}", hint=error.hint)
    return Supplied({name: wheel.version for name, wheel in planned.wheels.items()})


def host_of(answer: Mapping[str, Any]) -> HostPython:
    """Return the traits of a machine's Python that choose its wheels."""
    facts = answer["python"]
    major, minor = answer["version"][:2]
    libc_major, libc_minor = facts["libc_version"]
    return HostPython(
        (major, minor),
        facts["implementation"],
        facts["cpu"],
        facts["libc"],
        (libc_major, libc_minor),
        facts["gpus"],
    )
