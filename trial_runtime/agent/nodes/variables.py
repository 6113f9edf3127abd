"""The variables by which the processes of a trial find one another: those of torchrun."""

from __future__ import annotations

import socket
from collections.abc import Collection


def free_port(host: str) -> int:
    """A port of this host that nobody has at this moment.

    Raises:
        OSError: there is none, or the address is not of this host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def rank_variables(
    rank: int, *, nodes: int, host: str, port: int, given: Collection[str] = ()
) -> dict[str, str]:
    """The variables of one rank: one process on each node.

    A program that starts more of them, such as ``torchrun``, reads those that begin with ``PET_``.

    Args:
        rank: from 0.
        nodes: how many there are.
        host: of rank 0.
        port: of rank 0, which is free there.
        given: names that the user, or a launcher, has set: those count.
    """
    variables = {
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(nodes),
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": str(rank),
        "GROUP_RANK": str(rank),
        "PET_NNODES": str(nodes),
        "PET_NODE_RANK": str(rank),
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": str(port),
    }
    return {name: value for name, value in variables.items() if name not in given}
