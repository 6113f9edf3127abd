"""A folder is exported: which steps, in which order, and what to know about it."""

from __future__ import annotations

import re
import uuid

from nfs_setup import exports, firewall
from nfs_setup.distro import Distro, distro_of
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Host
from nfs_setup.mount_table import mount_above
from nfs_setup.mounts import Mount
from nfs_setup.nfs3 import Nfs3
from nfs_setup.paths import checked_path, refuse_unsafe
from nfs_setup.report import Report
from nfs_setup.request import ServerRequest
from nfs_setup.services import Services, services_of
from nfs_setup.step import Step
from nfs_setup.step_commands import Check
from nfs_setup.step_file import WriteFile
from nfs_setup.step_folder import Folder, group_id, user_ids
from nfs_setup.step_packages import Packages
from nfs_setup.step_service import Service
from nfs_setup.walk import MODE_BITS

#: Trials of one group share the folder: what is made in it belongs to that group, too.
_MODE = "2770"

_MEMORY = frozenset({"tmpfs", "ramfs"})
_NETWORK = frozenset({"nfs", "nfs4"})


def server_steps(host: Host, request: ServerRequest, report: Report) -> list[Step]:
    """Return the steps for a request on this machine; the report gets notes. Changes nothing.

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
    others = exports.exporters(host, path, file)
    if others:
        raise MachineRefuses(
            "is exported already",
            where=f"folder {path!r}",
            hint=f"by {', '.join(others)}; remove that line first, so that one file decides",
        )
    text = exports.text_of(path, clients, options)
    _read_back(text, path, [client.word for client in clients])
    folder, service = _folder(host, request, path), _service_name(distro, services)
    nfs3 = Nfs3(host, distro, services, report)
    off = not nfs3.stays(request.nfs3)
    return [
        folder,
        Folder(exports.FOLDER, shared=True),
        *([*nfs3.configuration(), *nfs3.rpcbind_before_packages()] if off else []),
        # Packages start their server as they are installed: what it may do is written before.
        WriteFile(file, text, reload=("exportfs", "-ra")),
        Packages(distro, distro.server_packages),
        *([nfs3.check()] if off else []),
        *nfs3.rpcbind_after_packages(server=True),
        *([nfs3.restart(service)] if off else []),
        Service(services, service),
        Check(
            f"{path} is exported",
            lambda host: "" if path in exports.exported(host) else "exportfs does not list it",
            hint="see: exportfs -v, and the messages of: exportfs -ra",
        ),
        *_firewall(host, request, clients, report),
    ]


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
            "sec=sys believes the user numbers that clients send: root of a client, or somebody "
            "with its address, can read and forge files here; see docs/nfs-admin.md"
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
            f"is no file system of its own: {reach}, and root of a client can read and "
            "change all of it, by handles of files that it makes up",
            where=f"folder {path!r}",
            hint="mount a disk or a volume of its own there; or add --shares-its-file-system, "
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
            hint="add --owner USER: the user that trials run as; root is nobody over NFS",
        )
    mode = request.mode or (_MODE if there is None else f"{there.mode & MODE_BITS:o}")
    if not mode.isdigit() or set(mode) - set("01234567") or int(mode, 8) > 0o7777:
        raise RequestRefused("is no mode", where=f"mode {mode!r}", hint="write it as 2770")
    if int(mode, 8) & ~MODE_BITS:
        hint = f"write {int(mode, 8) & MODE_BITS:04o}"
        raise RequestRefused("has set-uid, which no folder needs", where=f"mode {mode}", hint=hint)
    uid, gid = (there.uid, there.gid) if there else (0, 0)
    if owner:
        uid, gid = user_ids(host, owner)
    if group:
        gid = group_id(host, group)
    owner_text = f"owner {owner or uid} ({uid}), group {group or gid} ({gid})"
    return Folder(path, int(mode, 8), uid, gid, adopt=True, owner_text=owner_text)


def _read_back(text: str, path: str, clients: list[str]) -> None:
    """Check that exportfs will read from the text exactly this folder and these clients."""
    found = exports.read_exports(text.encode("utf-8", "surrogateescape"))
    if [(e.path, e.client) for e in found] != [(path, client) for client in clients]:
        raise AssertionError(f"exports of {path!r} would be read as {found}")


def _service_name(distro: Distro, services: Services) -> str:
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
