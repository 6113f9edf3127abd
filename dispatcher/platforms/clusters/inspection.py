"""A look at the ways from nodes to the head before anything starts: from this machine, which is not
one of them as a rule, so that most of it can only be tried by an agent."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dispatcher.errors import BackendError
from dispatcher.experiment.addresses import is_loopback
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.clusters.jump import JumpHostConfig, jump_of
from dispatcher.platforms.clusters.section import ClusterService

_TOPIC = "ways"
_MOST_NAMED = 4


def inspect_ways(section: ClusterService, nodes: Iterable[str]) -> Iterator[Finding]:
    """Yield which ways lead nowhere, as far as that is seen from here. Blocks for a login.

    Args:
        section: of the service.
        nodes: names or addresses of the cluster's nodes, as far as it says them.
    """
    named = section.head_address if section.channel in ("auto", "direct") else None
    if named is not None and is_loopback(host_of(named)):
        elsewhere = [node for node in dict.fromkeys(nodes) if is_elsewhere(node)]
        if elsewhere:
            some = ", ".join(elsewhere[:_MOST_NAMED])
            more = len(elsewhere) - _MOST_NAMED
            text = f"'headAddress' is {named}: on {some}"
            text += f" and {more} more" if more > 0 else ""
            hint = "name the address of this machine in their network"
            text += " that is the node itself"
            yield Finding(_TOPIC, Severity.PROBLEM, text, hint, (("headAddress",),))
    if section.jump is not None and section.channel in ("auto", "tunnel"):
        yield replace(inspect_jump(section.jump), keys=(("jump",),))


def inspect_jump(config: JumpHostConfig) -> Finding:
    """Log in as an agent would, where the key is here, too. Blocks."""
    from trial_runtime.tunnel.tunnel import Forbidden, NoKey, NoWay, dial, log_in

    try:
        address, jump = jump_of(config, ("127.0.0.1", 1))
        transport = log_in(jump)
    except BackendError as error:
        return Finding(_TOPIC, Severity.PROBLEM, f"the jump host: {error.message}", error.hint)
    except NoKey as error:
        text = f"{config.host} shows its key; nobody has logged in: {error}"
        return Finding(_TOPIC, Severity.NOTE, text, "nodes must have one of them")
    except NoWay as error:
        return Finding(_TOPIC, Severity.PROBLEM, str(error))
    try:
        dial(transport, jump, f"tcp://{address}").close()
    except Forbidden as error:
        hint = "'permitopen' of our key must name the port of 'channel', which is fixed then"
        return Finding(_TOPIC, Severity.NOTE, str(error), hint)
    except NoWay:
        pass  # no head is there yet
    finally:
        transport.close()
    return Finding(_TOPIC, Severity.OK, f"{jump.label} lets us in, and forwards for us")


def host_of(address: str) -> str:
    """The host of an address as the file has it, with a port or without."""
    if address.startswith("["):
        return address[1 : address.index("]")]
    return address.partition(":")[0]


def is_elsewhere(node: str) -> bool:
    """Whether a name or an address is certainly not this machine's: one that nobody knows here may
    be anything."""
    try:
        known = socket.getaddrinfo(node, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _, address in known:
        with socket.socket(family, kind, protocol) as tried:
            try:
                tried.bind((address[0], 0, *address[2:]))
            except OSError:
                continue
            return False
    return True
