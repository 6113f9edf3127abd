"""Packages and commands of each family of systems: one table, others are refused."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host


@dataclass(frozen=True)
class Distro:
    """A family of systems: what to install, how, and what its services are called."""

    family: str
    server_packages: tuple[str, ...]
    client_packages: tuple[str, ...]
    #: Lists what is installed, one name a line, of the packages that follow; of all if none do.
    installed: tuple[str, ...]
    refresh: tuple[str, ...]
    install: tuple[str, ...]
    #: Removes exactly the packages that follow, and refuses where others need them.
    remove: tuple[str, ...]
    #: The same, and leaves their configuration behind; empty where there is no such state.
    remove_keeping: tuple[str, ...]
    systemd_server: str
    service_server: str


_DEBIAN = Distro(
    family="debian",
    server_packages=("nfs-kernel-server",),
    client_packages=("nfs-common",),
    installed=("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"),
    refresh=("apt-get", "-q", "-o", "DPkg::Lock::Timeout=60", "update"),
    install=(
        *("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=60"),
        *("-o", "Dpkg::Options::=--force-confold", "install", "--no-install-recommends"),
    ),
    remove=("dpkg", "--purge"),
    remove_keeping=("dpkg", "--remove"),
    systemd_server="nfs-server.service",
    service_server="nfs-kernel-server",
)

_REDHAT = Distro(
    family="redhat",
    server_packages=("nfs-utils",),
    client_packages=("nfs-utils",),
    installed=("rpm", "-qa", "--qf", "installed %{NAME}\n"),
    refresh=(),
    install=("dnf", "-q", "-y", "install"),
    remove=("rpm", "-e"),
    remove_keeping=(),
    systemd_server="nfs-server.service",
    service_server="",
)

#: By ``ID`` and ``ID_LIKE`` of os-release(5).
_FAMILIES = {
    **dict.fromkeys(("debian", "ubuntu"), _DEBIAN),
    **dict.fromkeys(("rhel", "fedora", "centos", "rocky", "almalinux"), _REDHAT),
}

#: What package managers say while another one works.
_BUSY = ("could not get lock", "is locked by", "waiting for process with pid", "lock-frontend")


def distro_of(host: Host) -> Distro:
    """Return the family of a machine.

    Raises:
        MachineRefuses: for one that is not in the table.
    """
    text = (host.read("/etc/os-release") or host.read("/usr/lib/os-release") or b"").decode(
        "utf-8", "replace"
    )
    facts = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            facts[name.strip()] = " ".join(_parts(value))
    for word in (facts.get("ID", ""), *facts.get("ID_LIKE", "").split()):
        if word in _FAMILIES:
            return _FAMILIES[word]
    name = facts.get("PRETTY_NAME") or facts.get("ID") or "this system, which has no os-release,"
    raise MachineRefuses(
        f"{name} is neither of the Debian nor of the Red Hat family",
        hint="set NFS up by hand as docs/nfs-admin.md describes, it lists each file and command",
    )


def _parts(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return [value.strip("\"' ")]


def installed(host: Host, distro: Distro, names: tuple[str, ...] = ()) -> set[str]:
    """Return the packages that are installed.

    Args:
        host: the machine that is asked.
        distro: its family.
        names: the packages to look for; empty for all.
    """
    return {name for name, word in states(host, distro, names).items() if word == "installed"}


def states(host: Host, distro: Distro, names: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the state of each package that is there at all, by its name.

    Args:
        host: the machine that is asked.
        distro: its family.
        names: the packages to look for; empty for all.

    Returns:
        ``installed``, ``config-files`` (gone but for these), ``unpacked`` or others (died half
        way).
    """
    asked = names if distro.family == "debian" else ()
    by_name = {}
    for line in host.run([*distro.installed, *asked]).out.splitlines():
        word, _, name = line.strip().partition(" ")
        if word != "not-installed" and (not names or name in names):
            by_name[name] = word
    return by_name


def is_busy(output: str) -> bool:
    """Whether a package manager failed since another one is at work."""
    return any(word in output.lower() for word in _BUSY)
