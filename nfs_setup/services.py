"""Starting, stopping and enabling services: systemd where it runs, ``service`` elsewhere.

Containers and small virtual machines have no systemd, or have it installed and not running.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Protocol

from nfs_setup.host import Host

#: Seconds for a service to start or stop; an NFS server flushes what it holds.
START_S = 90.0

#: The server by the name that Debian gives its start script.
NFSD = "nfs-kernel-server"

#: Commands, one after the other.
Lines = tuple[tuple[str, ...], ...]

#: Changes of a service. The last two are about the next boot.
Verb = Literal["start", "stop", "restart", "enable", "disable"]


@dataclass(frozen=True)
class State:
    """State of one service."""

    active: bool
    enabled: bool


class Services(Protocol):
    """Manager of the services of a machine. :meth:`state` looks; :meth:`commands` is pure."""

    systemd: bool

    def state(self, host: Host, name: str) -> State:
        """Return the state of a service; one that is not installed is off in both."""

    def commands(self, verb: Verb, name: str) -> Lines:
        """Return the commands that start or stop a service now, or have it start at boot or not."""


class Systemd:
    """Services by ``systemctl``."""

    systemd = True

    def state(self, host: Host, name: str) -> State:
        """Read what systemctl prints; its exit codes differ between versions."""
        active = host.run(["systemctl", "is-active", name]).out.strip()
        enabled = host.run(["systemctl", "is-enabled", name]).out.strip()
        return State(active in ("active", "reloading", "activating"), enabled.startswith("enabled"))

    def commands(self, verb: Verb, name: str) -> Lines:
        """Return one command of ``systemctl``."""
        return (("systemctl", verb, name),)


class SysvInit:
    """Services by ``service`` and ``update-rc.d``, as Debian has them without systemd."""

    systemd = False

    def state(self, host: Host, name: str) -> State:
        """Ask its script whether it runs; start links of Debian's run level or boot enable it."""
        if name == NFSD:
            # Its script calls a kernel without nfsd "running" in some versions: ask nfsd.
            active = nfsd_threads(host) > 0
        else:
            active = host.run(["service", name, "status"]).ok
        pattern = re.compile(r"S\d\d" + re.escape(name))
        links = [*host.names("/etc/rc2.d"), *host.names("/etc/rcS.d")]
        enabled = any(pattern.fullmatch(link) for link in links)
        return State(active, enabled)

    def commands(self, verb: Verb, name: str) -> Lines:
        """Return commands of ``service`` and ``update-rc.d``.

        Debian's script stops nfsd by looking for it among programs, and so leaves its threads,
        which are the kernel's; those are ended as well.
        """
        if verb in ("enable", "disable"):
            return (("update-rc.d", name, verb),)
        if verb == "restart":
            return (*self.commands("stop", name), *self.commands("start", name))
        threads_off = (("rpc.nfsd", "0"),) if verb == "stop" and name == NFSD else ()
        return (("service", name, verb), *threads_off)


def services_of(host: Host) -> Services:
    """Return the manager of this machine's services, by the test of sd_booted(3)."""
    booted = host.stat("/run/systemd/system")
    return Systemd() if booted is not None and booted.kind == "folder" else SysvInit()


def nfsd_threads(host: Host) -> int:
    """Return the number of threads of the kernel's NFS server; 0: it does not run."""
    try:
        return int((host.read("/proc/fs/nfsd/threads") or b"0").strip() or b"0")
    except (OSError, ValueError):
        return 0


def versions(host: Host) -> dict[str, bool]:
    """Return NFS versions, and whether the server speaks them: ``{"3": False, "4.2": True}``."""
    try:
        text = (host.read("/proc/fs/nfsd/versions") or b"").decode()
    except OSError:
        text = ""
    return {word[1:]: word[0] == "+" for word in text.split()}
