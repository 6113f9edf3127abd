"""The rule a firewall needs for NFSv4: one port, from the clients only. Set when asked."""

from __future__ import annotations

from collections.abc import Sequence

from nfs_setup.exports import Client
from nfs_setup.host import Host
from nfs_setup.step_commands import Commands

PORT = 2049

_UNNAMED = "CLIENT-ADDRESS"


def kind_of(host: Host) -> str:
    """Return ``firewalld`` or ``ufw`` if it is on, else an empty text."""
    if host.run(["firewall-cmd", "--state"]).ok:
        return "firewalld"
    status = host.run(["ufw", "status"])
    return "ufw" if status.ok and "Status: active" in status.out else ""


def rules(kind: str, clients: Sequence[Client]) -> list[str]:
    """Return the commands a person would type. A client without an address leaves a gap to fill."""
    found: list[str] = []
    for client in clients:
        network = client.network or _UNNAMED
        if kind == "firewalld":
            found.append(f"firewall-cmd --permanent --add-rich-rule='{_rich(network)}'")
        elif kind == "ufw":
            found.append(f"ufw allow proto tcp from {network} to any port {PORT}")
        else:
            family = "ip6" if ":" in network else "ip"
            found.append(
                f"nft add rule inet filter input {family} saddr {network} tcp dport {PORT} accept"
            )
    return found + (["firewall-cmd --reload"] if kind == "firewalld" else [])


def steps(kind: str, clients: Sequence[Client]) -> list[Commands]:
    """Return a step for each network; for clients that are names, rules are made by hand."""
    found = []
    for client in clients:
        if client.network and kind == "firewalld":
            found.append(_firewalld(client.network))
        elif client.network and kind == "ufw":
            found.append(_ufw(client.network))
    return found


def _firewalld(network: str) -> Commands:
    rule = _rich(network)
    query = ("firewall-cmd", "--permanent", f"--query-rich-rule={rule}")
    reload = ("firewall-cmd", "--reload")
    return Commands(
        f"let {network} through firewalld to port {PORT}",
        lambda host: not host.run(query).ok,
        do=(("firewall-cmd", "--permanent", f"--add-rich-rule={rule}"), reload),
        back=(("firewall-cmd", "--permanent", f"--remove-rich-rule={rule}"), reload),
    )


def _ufw(network: str) -> Commands:
    rule = ("allow", "proto", "tcp", "from", network, "to", "any", "port", str(PORT))
    # ufw shows rules in an order of its own words.
    shown = f"allow from {network} to any port {PORT} proto tcp"
    return Commands(
        f"let {network} through ufw to port {PORT}",
        lambda host: shown not in host.run(["ufw", "show", "added"]).out,
        do=(("ufw", *rule),),
        back=(("ufw", "delete", *rule),),
    )


def _rich(network: str) -> str:
    family = "ipv6" if ":" in network else "ipv4"
    port = f'port port="{PORT}" protocol="tcp"'
    return f'rule family="{family}" source address="{network}" {port} accept'
