"""A folder is exported: which steps, in which order, and what to know about it."""

from __future__ import annotations

import re
import uuid

from nfs_setup import accounts, exports, firewall, rpcbind
from nfs_setup.distro import Distro, distro_of
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.exports_reader import exporters, read_exports
from nfs_setup.host import Host
from nfs_setup.mount_table import mount_above
from nfs_setup.mounts import Mount
from nfs_setup.paths import checked_path, refuse_unsafe
from nfs_setup.report import Report
from nfs_setup.request import ServerRequest
from nfs_setup.services import Services, nfsd_threads, services_of
from nfs_setup.step import Step
from nfs_setup.step_check import Check
from nfs_setup.step_commands import Commands
from nfs_setup.step_file import WriteFile
from nfs_setup.step_folder import Folder
from nfs_setup.step_packages import Packages
from nfs_setup.step_service import Service
from nfs_setup.walk import MODE_BITS

CONF = "/etc/nfs.conf.d/bequeath.conf"

_CONF_TEXT = """\
# Written by 'bequeath nfs server'; 'bequeath nfs undo' removes it.
# NFSv4 needs one port and no rpcbind. NFSv3 believes more and needs more open.
[nfsd]
vers3=n
"""

#: Trials of one group share the folder: what is made in it belongs to that group, too.
_MODE = "2770"

_MEMORY = frozenset({"tmpfs", "ramfs"})
_NETWORK = frozenset({"nfs", "nfs4"})


def server_steps(host: Host, request: ServerRequest, report: Report) -> list[Step]:
    """The steps for a request on this machine, and notes on it in the report. Changes nothing.

    Args:
        host: the machine that exports.
        request: the folder, its clients and the options.
        report: gets the notes.

    Raises:
        RequestRefused: for a path, client or option that is wrong or unsafe.
        MachineRefuses: if this machine cannot do it.
    """
    path = checked_path(request.path, "folder")
    clients = _clients(host, request, report)
    refuse_unsafe(host, path, "folder")
    options = _options(host, request, path, report)
    distro, services = distro_of(host), services_of(host)
    file = exports.file_of(path)
    others = exporters(host, path, file)
    if others:
        raise MachineRefuses(
            "is exported already",
            where=f"folder {path!r}",
            hint=f"by {', '.join(others)}; remove that line first, so that one file decides",
        )
    text = exports.text_of(path, clients, options)
    _read_back(text, path, [client.word for client in clients])
    serving = nfsd_threads(host) > 0
    return [
        _folder(host, request, path),
        Folder(exports.FOLDER, shared=True),
        *_version_files(host, request, services, report, serving),
        # Packages start their server as they are installed: what it may do is written before.
        WriteFile(file, text, reload=("exportfs", "-ra")),
        Packages(distro, distro.server_packages),
        *_version_steps(host, request, distro, services, report, serving),
        Service(services, _name(distro, services)),
        Check(
            f"{path} is exported",
            lambda host: "" if path in exported(host) else "exportfs does not list it",
            hint="see: exportfs -v, and the messages of: exportfs -ra",
        ),
        *_firewall(host, request, clients, report),
    ]


def exported(host: Host) -> list[str]:
    """The folders that are exported right now."""
    return sorted({e.path for e in read_exports(host.run(["exportfs", "-s"]).out.encode())})


def versions(host: Host) -> dict[str, bool]:
    """NFS versions, and whether the running server speaks them (``{"3": False, "4.2": True}``)."""
    try:
        text = (host.read("/proc/fs/nfsd/versions") or b"").decode()
    except OSError:
        text = ""
    return {word[1:]: word[0] == "+" for word in text.split()}


def _clients(host: Host, request: ServerRequest, report: Report) -> list[exports.Client]:
    if not request.clients:
        raise RequestRefused(
            "no client is named", hint="name the hosts or the network that may mount it"
        )
    clients = [
        exports.client(text, wildcards=request.allow_wildcards, everybody=request.allow_everybody)
        for text in request.clients
    ]
    for client in clients:
        if client.warning:
            report.note(client.warning, "warning")
        # exportfs says so, goes on without it, and ends with 0.
        if client.is_name and not host.run(["getent", "ahosts", client.word]).ok:
            raise MachineRefuses(
                "has no address here",
                where=f"client {client.word!r}",
                hint="mend the name, or DNS or /etc/hosts, or give its address",
            )
    return list({client.word: client for client in clients}.values())


def _options(host: Host, request: ServerRequest, path: str, report: Report) -> exports.Options:
    mount = mount_above(host, path)
    _judge_reach(mount, request, path, report)
    fsid = ""
    if mount is not None and mount.kind in _MEMORY:
        report.note(f"{path} is in memory ({mount.kind}): it is gone after a restart", "warning")
        fsid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"bequeath:{path}"))
    if mount is not None and mount.kind in _NETWORK:
        text = (
            f"{path} lies on another NFS ({mount.device}): locks and restarts may fail through two"
        )
        report.note(f"{text}; export it where its disk is", "warning")
        fsid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"bequeath:{path}"))
    if not request.root_squash:
        report.note("root of any client is root in this folder (no_root_squash)", "warning")
    if not request.sync:
        text = "what clients believe written is lost when this machine crashes (async)"
        report.note(text, "warning")
    sec = exports.flavours(request.sec)
    if "sys" in sec:
        report.note(
            "sec=sys believes the user numbers that clients send: whoever is root on a client, or "
            "takes its address, can read and forge files here; see docs/nfs-admin.md"
        )
    return exports.Options(
        read_only=request.read_only,
        root_squash=request.root_squash,
        sync=request.sync,
        sec=sec,
        fsid=fsid,
    )


def _judge_reach(mount: Mount | None, request: ServerRequest, path: str, report: Report) -> None:
    """Judge how far clients get that forge handles of files: the file system, not the folder."""
    if mount is None or (mount.point == path and mount.top == "/"):
        return
    reach = f"the file system of {mount.point} ({mount.device}) holds more than {path}"
    if not request.shares_its_file_system:
        raise MachineRefuses(
            f"is no file system of its own: {reach}, and whoever is root on a client can read and "
            "change all of it, by handles of files that it makes up",
            where=f"folder {path!r}",
            hint="mount a disk or a volume of its own there; or say --shares-its-file-system, "
            "where root of each client may see everything on it",
        )
    report.note(f"{reach}: root of a client may reach all of it", "warning")


def _folder(host: Host, request: ServerRequest, path: str) -> Folder:
    there = host.stat(path)
    asked = bool(request.owner or request.group or request.mode)
    if there is not None and not asked:
        return Folder(path)
    owner, group = request.owner, request.group
    if there is None and not owner and re.fullmatch(r"\d{1,10}:\d{1,10}", request.maker):
        owner, _, made_group = request.maker.partition(":")
        group = group or made_group
    if there is None and not owner:
        raise RequestRefused(
            "is not there, and nobody is named to own it",
            where=f"folder {path!r}",
            hint="say --owner USER: the user that trials run as; root is nobody over NFS",
        )
    mode = request.mode or (_MODE if there is None else f"{there.mode & MODE_BITS:o}")
    if not mode.isdigit() or set(mode) - set("01234567") or int(mode, 8) > 0o7777:
        raise RequestRefused("is no mode", where=f"mode {mode!r}", hint="write it as 2770")
    if int(mode, 8) & ~MODE_BITS:
        hint = f"write {int(mode, 8) & MODE_BITS:04o}"
        raise RequestRefused("has set-uid, which no folder needs", where=f"mode {mode}", hint=hint)
    uid, gid = (there.uid, there.gid) if there else (0, 0)
    if owner:
        uid, gid = accounts.user(host, owner)
    if group:
        gid = accounts.group(host, group)
    owner_text = f"owner {owner or uid} ({uid}), group {group or gid} ({gid})"
    return Folder(path, int(mode, 8), uid, gid, adopt=True, owner_text=owner_text)


def _read_back(text: str, path: str, clients: list[str]) -> None:
    """Check that exportfs will read from the text exactly this folder and these clients."""
    found = read_exports(text.encode("utf-8", "surrogateescape"))
    if [(e.path, e.client) for e in found] != [(path, client) for client in clients]:
        raise AssertionError(f"exports of {path!r} would be read as {found}")


def _leaves_v3(host: Host, request: ServerRequest, report: Report, serving: bool) -> bool:
    """Whether NFSv3 stays as it is, since it was asked for or since others depend on it."""
    if request.nfs3:
        report.note("NFSv3 and rpcbind are left as they are (--nfs3)")
        return True
    if serving and versions(host).get("3") and host.read(CONF) is None:
        foreign = [path for path in exported(host) if host.read(exports.file_of(path)) is None]
        if foreign:
            report.note(
                f"NFSv3 stays on: this machine serves {', '.join(foreign)} already, perhaps to "
                f"clients that need it; turn it off with 'vers3=n' below [nfsd] in /etc/nfs.conf",
                "warning",
            )
            return True
    return False


def _version_files(
    host: Host, request: ServerRequest, services: Services, report: Report, serving: bool
) -> list[Step]:
    if _leaves_v3(host, request, report, serving):
        return []
    return [
        Folder("/etc/nfs.conf.d", shared=True),
        WriteFile(CONF, _CONF_TEXT, shared=True),
        *rpcbind.before_packages(host, services, report),
    ]


def _version_steps(
    host: Host,
    request: ServerRequest,
    distro: Distro,
    services: Services,
    report: Report,
    serving: bool,
) -> list[Step]:
    found: list[Step] = []
    off = not _leaves_v3(host, request, report, serving)
    if off:
        found.append(
            Check(
                "NFSv3 is turned off by our file",
                lambda host: (
                    ""
                    if host.run(["nfsconf", "--get", "nfsd", "vers3"]).out.strip() == "n"
                    else f"this system's NFS reads no {CONF}"
                ),
                hint="upgrade nfs-utils, or leave NFSv3 as it is with --nfs3",
            )
        )
    found += rpcbind.after_packages(host, distro, services, report, server=True)
    if off:
        name = _name(distro, services)
        found.append(
            Commands(
                f"NFSv3 is off in the server that runs ({name} is restarted)",
                lambda host: nfsd_threads(host) > 0 and versions(host).get("3", False),
                do=services.restart(name),
                shared=True,
            )
        )
    return found


def _name(distro: Distro, services: Services) -> str:
    if services.systemd:
        return distro.systemd_server
    if not distro.service_server:
        raise MachineRefuses(
            "systemd does not run here, and this family of systems starts NFS by it alone",
            hint="a container without systemd can be no NFS server; use its host",
        )
    return distro.service_server


def _firewall(
    host: Host, request: ServerRequest, clients: list[exports.Client], report: Report
) -> list[Step]:
    kind = firewall.kind_of(host)
    steps: list[Step] = list(firewall.steps(kind, clients)) if request.open_firewall else []
    if request.open_firewall and not kind:
        report.note("no firewalld or ufw is on here: no rule was set", "warning")
    if len(steps) < len(clients):
        text = "; ".join(firewall.rules(kind, clients))
        report.note(f"a firewall on the way must let this through: {text}", "do")
    return steps
