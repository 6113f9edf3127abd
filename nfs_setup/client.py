"""A share is mounted, now and after each boot: which steps, in which order."""

from __future__ import annotations

import posixpath
import re

from nfs_setup import units
from nfs_setup.distro import distro_of
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.exports import flavours
from nfs_setup.host import Host
from nfs_setup.mount_table import mount_at
from nfs_setup.mounts import READER_PATIENCE_S
from nfs_setup.nfs3 import Nfs3
from nfs_setup.paths import checked_path, escaped, is_host_name, refuse_unsafe
from nfs_setup.report import Report
from nfs_setup.request import ClientRequest
from nfs_setup.services import services_of
from nfs_setup.step import Step
from nfs_setup.step_commands import Check, Commands
from nfs_setup.step_file import MarkedLines, WriteFile
from nfs_setup.step_folder import Folder
from nfs_setup.step_mount import MountShare, refuse_other
from nfs_setup.step_packages import Packages

FSTAB = "/etc/fstab"

_LASTS = ("auto", "automount", "fstab", "no")
_ADDRESS = re.compile(r"\[[0-9a-fA-F:.]+\]|[0-9.]+")


def client_steps(host: Host, request: ClientRequest, report: Report) -> list[Step]:
    """Return the steps for a request on this machine; the report gets the reason of each option.

    Args:
        host: the machine that mounts.
        request: the share, the mount point and the options.
        report: gets each option with its reason, and notes.

    Raises:
        RequestRefused: for a source, place or option that is wrong.
        MachineRefuses: if this machine cannot do it.
    """
    source, point = checked_source(request.source), checked_path(request.point, "mount point")
    refuse_unsafe(host, point, "mount point")
    options = mount_options(request)
    report.shown["options"] = explained(options)
    systemd = services_of(host).systemd
    last = request.last
    if last not in _LASTS:
        raise RequestRefused(f"is not one of {', '.join(_LASTS)}", where=f"--last {last!r}")
    if last == "auto":
        last = "automount" if systemd else "fstab"
    if last == "automount" and not systemd:
        raise MachineRefuses("systemd does not run here", hint="take --last fstab")
    _refuse_taken(host, source, point, options)
    if not request.dry_run:  # a plan may be made elsewhere
        _refuse_unknown(host, source)
    distro, services = distro_of(host), services_of(host)
    nfs3 = Nfs3(host, distro, services, report)
    first: list[Step] = [
        *nfs3.rpcbind_before_packages(),
        Packages(distro, distro.client_packages),
        *nfs3.rpcbind_after_packages(server=False),
        Folder(point),
    ]
    if last == "automount":
        return first + _automount(source, point, options)
    if last == "fstab":
        in_fstab = (*options, "_netdev", "nofail")
        report.shown["options"] = explained(in_fstab)
        line = f"{_escaped_source(source)} {escaped(point)} nfs4 {','.join(in_fstab)} 0 0\n"
        reload = ("systemctl", "daemon-reload") if systemd else ()
        first.append(MarkedLines(FSTAB, line, reload=reload, mark=escaped(point)))
    else:
        report.note("it is gone after the next boot (--last no)")
    return [*first, MountShare(source, point, options)]


def checked_source(text: str) -> str:
    """Check and return ``server:/path``: the server by name, address or [IPv6 address].

    Raises:
        RequestRefused: for anything else.
    """
    where = f"share {text!r}"
    server, colon, path = text.partition(":/")
    if not colon or not server:
        raise RequestRefused("is no share", where=where, hint="write it as server:/srv/weights")
    if not _ADDRESS.fullmatch(server) and not is_host_name(server):
        hint = "an IPv6 address stands in brackets" if ":" in server else ""
        raise RequestRefused("has no name or address of a server", where=where, hint=hint)
    return f"{server}:{checked_path('/' + path, 'share')}"


def _escaped_source(source: str) -> str:
    server, _, path = source.partition(":/")
    return f"{server}:{escaped('/' + path)}"


def _refuse_unknown(host: Host, source: str) -> None:
    """Refuse a server without an address; mount would say 'Resource temporarily unavailable'."""
    server = source.partition(":/")[0]
    if not _ADDRESS.fullmatch(server) and not host.run(["getent", "ahosts", server]).ok:
        raise MachineRefuses(
            "has no address here",
            where=f"server {server!r}",
            hint="mend the name, or DNS or /etc/hosts, or give its address",
        )


def _refuse_taken(host: Host, source: str, point: str, options: tuple[str, ...]) -> None:
    there = mount_at(host, point)
    if there is not None:
        refuse_other(there, source, options)
        return
    hidden = host.names(point)
    if hidden and not units.waits_at(host, point):
        raise MachineRefuses(
            f"holds {len(hidden)} files that a mount would hide",
            where=point,
            hint="choose an empty folder, or one that is not there yet",
        )


def _automount(source: str, point: str, options: tuple[str, ...]) -> list[Step]:
    name = units.unit_name(point)
    reload = ("systemctl", "daemon-reload")
    folder = "/etc/systemd/system"
    automount = f"{name}.automount"
    return [
        WriteFile(
            f"{folder}/{name}.mount", units.mount_unit(source, point, options), reload=reload
        ),
        WriteFile(f"{folder}/{automount}", units.automount_unit(source, point), reload=reload),
        Commands(
            f"mount {source} on {point} at the first look, now and after each boot",
            lambda host: (
                not units.waits_at(host, point)
                or host.run(["systemctl", "is-enabled", automount]).out.strip() != "enabled"
            ),
            do=(("systemctl", "enable", "--now", automount),),
            back=(
                ("systemctl", "disable", "--now", automount),
                ("systemctl", "stop", f"{name}.mount"),
            ),
        ),
        Check(
            f"{source} is mounted on {point}",
            lambda host: _looked_at(host, source, point),
            hint=f"see: systemctl status {name}.mount",
        ),
    ]


def _looked_at(host: Host, source: str, point: str) -> str:
    """Look into the folder, which mounts it. Returns what is wrong, or an empty text."""
    there = mount_at(host, point)
    if there is None and units.waits_at(host, point):
        host.run(["ls", "-d", "--", posixpath.join(point, ".")], limit_s=60.0)
        there = mount_at(host, point)
    if there is None or there.device != source:
        return "it is not mounted"
    return ""


_VERSIONS = ("4", "4.0", "4.1", "4.2")

#: What each option is for, by its name; ``bequeath nfs client`` prints those that it uses.
WHY: dict[str, str] = {
    "vers": "4.2 has server-side copy and sparse files, and needs one port; written down so that "
    "no older one is agreed on silently",
    "proto": "TCP, also where something in between would prefer otherwise",
    "hard": "while the server is away programs wait; 'soft' would hand them errors, and half "
    "a file",
    "sec": "how users are known to the server; 'sys' believes their numbers, 'krb5p' proves "
    "and encrypts",
    "nosuid": "no program on the share runs as somebody else than who starts it",
    "nodev": "no file on the share gives access to a device of this machine",
    "noexec": "no program on the share can be started (trial code must lie on another file system)",
    "noatime": "reading does not write",
    "nconnect": "several connections, so that one big file does not hold up all others; the "
    "first mount from a server decides for all of them",
    "actimeo": "for how many seconds attributes may be old, and so how long a child may wait for "
    f"weights that are there; less than {READER_PATIENCE_S}",
    "_netdev": "it is mounted after the network is up",
    "nofail": "this machine boots without the server",
    "ro": "nothing here can write to the share",
}


def mount_options(request: ClientRequest) -> tuple[str, ...]:
    """Return the options of the mount for a request, in the order they are explained in.

    Raises:
        RequestRefused: for a value that NFS does not have, or that costs results.
    """
    if request.version not in _VERSIONS:
        raise RequestRefused(
            "is no version that is set up here",
            where=f"NFS version {request.version!r}",
            hint=f"it is one of {', '.join(_VERSIONS)}; mount NFSv3 by hand where it must be",
        )
    sec = flavours(request.sec)
    if len(sec) != 1:
        raise RequestRefused("a mount has one", where=f"sec {request.sec!r}")
    if not 1 <= request.nconnect <= 16:
        raise RequestRefused("is not between 1 and 16", where=f"nconnect {request.nconnect}")
    if request.actimeo < 0 or request.actimeo >= READER_PATIENCE_S:
        raise RequestRefused(
            f"a child could wait that long for weights of a parent that has ended; "
            f"it has to be less than {READER_PATIENCE_S} s",
            where=f"actimeo {request.actimeo}",
            hint="take 60 or less, or leave it out",
        )
    found = ["ro"] if request.read_only else []
    found += [f"vers={request.version}", "proto=tcp", "hard", f"sec={sec[0]}", "nosuid", "nodev"]
    found += [] if request.exec_allowed else ["noexec"]
    found += [] if request.atime else ["noatime"]
    found += [f"nconnect={request.nconnect}"] if request.nconnect > 1 else []
    found += [f"actimeo={request.actimeo}"] if request.actimeo else []
    return tuple(found)


def explained(options: tuple[str, ...]) -> dict[str, str]:
    """Return each option with its reason."""
    return {o: WHY[re.split("[=.]", o, maxsplit=1)[0]] for o in options}
