"""Starting, stopping and enabling services: systemd where it runs, ``service`` elsewhere.

Containers and small virtual machines have no systemd, or have it installed and not running.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from nfs_setup.host import Host

#: Seconds for a service to start or stop; an NFS server flushes what it holds.
START_S = 90.0

#: The server by the name that Debian gives its start script.
NFSD = "nfs-kernel-server"

#: Commands, one after the other.
Lines = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class State:
    """State of one service."""

    active: bool
    enabled: bool


class Services(Protocol):
    """Pure but for :meth:`state`: the others return the commands to run."""

    systemd: bool

    def state(self, host: Host, name: str) -> State:
        """State of a service; one that is not installed is neither active nor enabled."""

    def start(self, name: str) -> Lines:
        """The commands that start it."""

    def stop(self, name: str) -> Lines:
        """The commands that stop it."""

    def restart(self, name: str) -> Lines:
        """The commands that start it anew."""

    def enable(self, name: str) -> Lines:
        """The commands that make it start at boot."""

    def disable(self, name: str) -> Lines:
        """The commands that keep it off at boot."""


class Systemd:
    """Services by ``systemctl``."""

    systemd = True

    def state(self, host: Host, name: str) -> State:
        """State by what systemctl prints; its exit codes differ between versions."""
        active = host.run(["systemctl", "is-active", name]).out.strip()
        enabled = host.run(["systemctl", "is-enabled", name]).out.strip()
        return State(active in ("active", "reloading", "activating"), enabled.startswith("enabled"))

    def start(self, name: str) -> Lines:
        """The commands that start it."""
        return (("systemctl", "start", name),)

    def stop(self, name: str) -> Lines:
        """The commands that stop it."""
        return (("systemctl", "stop", name),)

    def restart(self, name: str) -> Lines:
        """The commands that start it anew."""
        return (("systemctl", "restart", name),)

    def enable(self, name: str) -> Lines:
        """The commands that make it start at boot."""
        return (("systemctl", "enable", name),)

    def disable(self, name: str) -> Lines:
        """The commands that keep it off at boot."""
        return (("systemctl", "disable", name),)


class SysvInit:
    """Services by ``service`` and ``update-rc.d``, as Debian has them without systemd."""

    systemd = False

    def state(self, host: Host, name: str) -> State:
        """Active by its script; enabled by a start link of Debian's own run level, or of boot."""
        if name == NFSD:
            # Its script calls a kernel without nfsd "running" in some versions: ask nfsd.
            active = nfsd_threads(host) > 0
        else:
            active = host.run(["service", name, "status"]).ok
        pattern = re.compile(r"S\d\d" + re.escape(name))
        links = [*host.names("/etc/rc2.d"), *host.names("/etc/rcS.d")]
        enabled = any(pattern.fullmatch(link) for link in links)
        return State(active, enabled)

    def start(self, name: str) -> Lines:
        """The commands that start it."""
        return (("service", name, "start"),)

    def stop(self, name: str) -> Lines:
        """The commands that stop it.

        Debian's script looks for nfsd among programs and leaves its threads, which are the
        kernel's; so those are ended as well.
        """
        threads_off = (("rpc.nfsd", "0"),) if name == NFSD else ()
        return (("service", name, "stop"), *threads_off)

    def restart(self, name: str) -> Lines:
        """The commands that start it anew."""
        return (*self.stop(name), *self.start(name))

    def enable(self, name: str) -> Lines:
        """The commands that make it start at boot."""
        return (("update-rc.d", name, "enable"),)

    def disable(self, name: str) -> Lines:
        """The commands that keep it off at boot."""
        return (("update-rc.d", name, "disable"),)


def services_of(host: Host) -> Services:
    """The manager of this machine's services, by the test that systemd documents (sd_booted(3))."""
    booted = host.stat("/run/systemd/system")
    return Systemd() if booted is not None and booted.kind == "folder" else SysvInit()


def nfsd_threads(host: Host) -> int:
    """Number of threads of the kernel's NFS server; 0: it does not run."""
    try:
        return int((host.read("/proc/fs/nfsd/threads") or b"0").strip() or b"0")
    except (OSError, ValueError):
        return 0
