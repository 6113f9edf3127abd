"""rpcbind, which NFSv3 needs and NFSv4 does not: off, unless it was in use before.

Debian's packages bring it along and start it, open to the whole network.
"""

from __future__ import annotations

from nfs_setup.distro import Distro, installed
from nfs_setup.host import Host
from nfs_setup.report import Report
from nfs_setup.services import Services
from nfs_setup.step import Step
from nfs_setup.step_commands import Commands
from nfs_setup.step_service import Service

_UNITS = ("rpcbind.service", "rpcbind.socket")


def before_packages(host: Host, services: Services, report: Report) -> list[Step]:
    """Steps before packages are installed: systemd can keep rpcbind from starting.

    Args:
        host: the machine.
        services: its services.
        report: gets a note where rpcbind is left on.
    """
    if not services.systemd:
        return []
    if services.state(host, "rpcbind.socket").active and not _is_masked(host):
        report.note("rpcbind ran here before and is left on; NFSv4 does not need it")
        return []
    return [
        Commands(
            "keep rpcbind off, which NFSv4 does not need",
            lambda host: not _is_masked(host),
            do=(("systemctl", "mask", "--now", *_UNITS),),
            back=(("systemctl", "unmask", *_UNITS),),
            shared=True,
        )
    ]


def after_packages(
    host: Host, distro: Distro, services: Services, report: Report, *, server: bool
) -> list[Step]:
    """Steps after packages are installed. Without systemd rpcbind has to be started for a server,
    and stopped where it came along.

    Args:
        host: the machine.
        distro: its family.
        services: its services.
        report: gets a note where rpcbind is left on.
        server: whether this machine exports; else it only mounts.
    """
    if services.systemd:
        return []
    if server:
        report.note(
            "rpcbind runs as well: without systemd, Debian's start script of the NFS server "
            "insists on it; NFSv4 does not use it, keep port 111 shut"
        )
        return [Service(services, "rpcbind", why="the server's start script asks for it")]
    if installed(host, distro, ("rpcbind",)):
        return []
    return [Service(services, "rpcbind", on=False, ours=True, why="NFSv4 does not need it")]


def _is_masked(host: Host) -> bool:
    return host.run(["systemctl", "is-enabled", "rpcbind.socket"]).out.strip() == "masked"
