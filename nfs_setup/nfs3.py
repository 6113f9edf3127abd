"""NFSv3 and rpcbind, which it needs and NFSv4 does not: off, unless somebody depends on them.

Debian's packages bring rpcbind along and start it, open to the whole network.
"""

from __future__ import annotations

from nfs_setup import exports
from nfs_setup.distro import Distro, installed
from nfs_setup.host import Host
from nfs_setup.report import Report
from nfs_setup.services import Services, nfsd_threads, versions
from nfs_setup.step import Step
from nfs_setup.step_commands import Check, Commands
from nfs_setup.step_file import WriteFile
from nfs_setup.step_folder import Folder
from nfs_setup.step_service import Service

CONF = "/etc/nfs.conf.d/bequeath.conf"

_CONF_TEXT = """\
# Written by 'bequeath nfs server'; 'bequeath nfs undo' removes it.
# NFSv4 needs one port and no rpcbind. NFSv3 believes more and needs more open.
[nfsd]
vers3=n
"""

_UNITS = ("rpcbind.service", "rpcbind.socket")


class Nfs3:
    """Steps that turn NFSv3 and rpcbind off on one machine.

    Args:
        host: the machine.
        distro: its family.
        services: its services.
        report: gets a note on all that is left on.
    """

    def __init__(self, host: Host, distro: Distro, services: Services, report: Report) -> None:
        self._host = host
        self._distro = distro
        self._services = services
        self._report = report

    def stays(self, asked: bool) -> bool:
        """Whether NFSv3 stays as it is, since it was asked for or since others depend on it."""
        if asked:
            self._report.note("NFSv3 and rpcbind are left as they are (--nfs3)")
            return True
        host = self._host
        if nfsd_threads(host) > 0 and versions(host).get("3") and host.read(CONF) is None:
            foreign = [
                path for path in exports.exported(host) if host.read(exports.file_of(path)) is None
            ]
            if foreign:
                self._report.note(
                    f"NFSv3 stays on: this machine serves {', '.join(foreign)} already, perhaps "
                    "to clients that need it; turn it off with 'vers3=n' below [nfsd] in "
                    "/etc/nfs.conf",
                    "warning",
                )
                return True
        return False

    def configuration(self) -> list[Step]:
        """Return the steps that configure a server; the packages that come next start it."""
        return [
            Folder("/etc/nfs.conf.d", shared=True),
            WriteFile(CONF, _CONF_TEXT, shared=True),
        ]

    def check(self) -> Step:
        """Return a check that the installed server reads the configuration."""
        return Check(
            "NFSv3 is turned off by our file",
            _unread,
            "upgrade nfs-utils, or leave NFSv3 as it is with --nfs3",
        )

    def restart(self, name: str) -> Step:
        """Return a restart of the service of that name, if it runs and speaks NFSv3 still."""
        return Commands(
            f"NFSv3 is off in the server that runs ({name} is restarted)",
            lambda host: nfsd_threads(host) > 0 and versions(host).get("3", False),
            do=self._services.commands("restart", name),
            shared=True,
        )

    def rpcbind_before_packages(self) -> list[Step]:
        """Return the steps before packages: systemd can keep rpcbind from being started."""
        if not self._services.systemd:
            return []
        host = self._host
        if self._services.state(host, "rpcbind.socket").active and not _is_masked(host):
            self._report.note("rpcbind ran here before and is left on; NFSv4 does not need it")
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

    def rpcbind_after_packages(self, *, server: bool) -> list[Step]:
        """Return the steps after packages are installed. Without systemd rpcbind has to be started
        for a ``server``, and stopped on other machines where it came along."""
        if self._services.systemd:
            return []
        if server:
            self._report.note(
                "rpcbind runs as well: without systemd, Debian's start script of the NFS server "
                "insists on it; NFSv4 does not use it, keep port 111 shut"
            )
            why = "the server's start script asks for it"
            return [Service(self._services, "rpcbind", why=why)]
        if installed(self._host, self._distro, ("rpcbind",)):
            return []
        why = "NFSv4 does not need it"
        return [Service(self._services, "rpcbind", on=False, ours=True, why=why)]


def _unread(host: Host) -> str:
    if host.run(["nfsconf", "--get", "nfsd", "vers3"]).out.strip() == "n":
        return ""
    return f"this system's NFS reads no {CONF}"


def _is_masked(host: Host) -> bool:
    return host.run(["systemctl", "is-enabled", "rpcbind.socket"]).out.strip() == "masked"
