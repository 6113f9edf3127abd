"""Checks of what a section of a cluster needs of this machine: references, a way for agents to
reach the head, and folders that nodes see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dispatcher.experiment.addresses import is_loopback
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.clusters.jump import check_jump
from dispatcher.platforms.clusters.section import ClusterService
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys


def check_environment(section: ClusterService, at: JsonPath) -> Iterator[KeyProblem]:
    """Yield references of the variables that lead nowhere.

    Args:
        section: of the service.
        at: its path.
    """
    for name, value in section.environment.items():
        try:
            resolve_reference(value)
        except ValueError as error:
            yield KeyProblem((*at, "environment", name), str(error))


def check_way(
    section: ClusterService, at: JsonPath, experiment: AllKeys, *, by_folder: bool = False
) -> Iterator[KeyProblem]:
    """Yield that nodes of a cluster cannot reach the head: allocations would begin, and nobody
    would ever hear from one.

    Args:
        section: of the service.
        at: its path.
        experiment: the whole file.
        by_folder: whether a folder could be their way.
    """
    channel = section.channel
    if section.jump is not None and channel in ("auto", "tunnel"):
        yield from check_jump(section.jump, (*at, "jump"), experiment)
        return
    if channel == "tunnel":
        text = "is missing: 'channel: tunnel' leads through a machine that nodes log in to"
        yield KeyProblem((*at, "jump"), text, "write 'jump: USER@HOST'")
        return
    if channel == "folder" or (channel == "auto" and by_folder):
        return
    host = experiment.channel.listens_on
    if section.is_reached(host):
        return
    closed = is_loopback(host)
    mend = "write 'headAddress: ADDRESS'"
    if closed:
        mend += (
            ", and beside 'trainingService' 'channel: {transport: tcp, host: ADDRESS, "
            "beyondThisMachine: true}'"
        )
    mend += "; or 'jump: USER@HOST', a machine that nodes can log in to"
    if by_folder:
        mend += "; or 'channel: folder'"
    yield KeyProblem(
        (*at, "headAddress"),
        "is missing: agents on other machines reach the head by an address of this one, and it "
        f"listens on {host}",
        f"{mend}; where nodes are this machine, 'headAddress: 127.0.0.1'",
    )


def check_folders(
    section: ClusterService, at: JsonPath, experiment: AllKeys
) -> Iterator[KeyProblem]:
    """Yield what a shared folder lacks, and what lies outside of it that nodes do not see.

    Args:
        section: of the service.
        at: its path.
        experiment: the whole file.
    """
    shared, key = section.shared_folder, (*at, "sharedFolder")
    if shared is None:
        if section.bring_code:
            text = "is given without 'sharedFolder', below which the code is laid"
            yield KeyProblem((*at, "bringCode"), text, "name a folder that nodes see")
        return
    if not (os.path.isdir(shared) and os.access(shared, os.W_OK | os.X_OK)):
        yield KeyProblem(key, f"is no folder that can be written to: {shared}")
    hidden = "is given since nodes do not see the experiment's folder, where {} would lie"
    if experiment.weights_root is None:
        yield KeyProblem(key, hidden.format("weights"), "name a 'weightsRoot' that nodes see")
    if section.code_snapshot and not section.bring_code:
        yield KeyProblem(key, hidden.format("the copy"), "leave 'codeSnapshot' out")
