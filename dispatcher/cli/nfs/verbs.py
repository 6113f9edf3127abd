"""``bequeath nfs``: an NFS share set up and taken back, on the machine it is run on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dispatcher.cli.arguments import Json
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.cli.nfs import arguments as options
from dispatcher.errors import InternalError, PermanentBackendError, UserError
from dispatcher.terminal.console import print_json

if TYPE_CHECKING:
    from nfs_setup.request import Request

NFS: Table = {
    "server": CommandEntry("cli.nfs.verbs:server", "Export a folder of this machine."),
    "client": CommandEntry(
        "cli.nfs.verbs:client", "Mount a share on this machine, now and after each boot."
    ),
    "status": CommandEntry(
        "cli.nfs.verbs:status", "What was set up on this machine, and how it stands."
    ),
    "undo": CommandEntry("cli.nfs.verbs:undo", "Take back what was set up, byte for byte."),
    "verify": CommandEntry(
        "cli.nfs.verify:verify", "Measure any share: what passes, what to change."
    ),
    "cluster": CommandEntry(
        "cli.nfs.cluster:cluster", "All of it on a server and its clients, over SSH."
    ),
}


def server(
    path: options.ExportedFolder,
    clients: options.Clients,
    owner: options.Owner = "",
    group: options.Group = "",
    mode: options.Mode = "",
    read_only: options.ExportReadOnly = False,
    sec: options.Flavours = "sys",
    no_root_squash: options.NoRootSquash = False,
    async_: options.Async = False,
    nfs3: options.Nfs3 = False,
    open_firewall: options.OpenFirewall = False,
    shares_its_file_system: options.SharesItsFileSystem = False,
    allow_wildcards: options.AllowWildcards = False,
    allow_everybody: options.AllowEverybody = False,
    dry_run: options.DryRun = False,
    as_json: Json = False,
) -> None:
    """Export a folder of this machine to clients that are named, and to nobody else.

    Installs the NFS server, makes the folder, writes one file of its own below
    /etc/exports.d, turns NFSv3 off, starts the service and looks whether the folder is
    exported. Root of a client is nobody here (root_squash), and what clients believe written
    is on disk (sync). A second run changes nothing and says so; a step that fails takes back
    those before it; `bequeath nfs undo` takes back all.
    """
    from nfs_setup.request import ServerRequest

    maker = (os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", ""))
    request = ServerRequest(
        path=path,
        clients=tuple(clients),
        owner=owner,
        group=group,
        mode=mode,
        maker=":".join(maker),
        read_only=read_only,
        root_squash=not no_root_squash,
        sync=not async_,
        sec=sec,
        nfs3=nfs3,
        shares_its_file_system=shares_its_file_system,
        allow_wildcards=allow_wildcards,
        allow_everybody=allow_everybody,
        open_firewall=open_firewall,
        dry_run=dry_run,
    )
    _answer(request, as_json)


def client(
    source: options.Source,
    point: options.MountPoint,
    last: options.Last = "auto",
    nfs_version: options.NfsVersion = "4.2",
    sec: options.Flavour = "sys",
    read_only: options.MountReadOnly = False,
    nconnect: options.Connections = 4,
    actimeo: options.AttributeAge = 0,
    noexec: options.NoExec = False,
    atime: options.AccessTimes = False,
    dry_run: options.DryRun = False,
    as_json: Json = False,
) -> None:
    """Mount a share on this machine, now and after each boot.

    Installs the NFS client, makes the folder and mounts the share with options that it
    explains one by one. In /etc/fstab it writes lines of its own only. Refuses a folder that
    holds files, or where something else is mounted. A second run changes nothing and says so;
    `bequeath nfs undo` takes back all.
    """
    from nfs_setup.request import ClientRequest

    request = ClientRequest(
        source=source,
        point=point,
        last=last,
        version=nfs_version,
        sec=sec,
        read_only=read_only,
        nconnect=nconnect,
        actimeo=actimeo,
        exec_allowed=not noexec,
        atime=atime,
        dry_run=dry_run,
    )
    _answer(request, as_json)


def status(as_json: Json = False) -> None:
    """Show what was set up on this machine, and its status. Needs root, changes nothing."""
    from nfs_setup.request import StatusRequest

    _answer(StatusRequest(), as_json)


def undo(
    target: options.UndoTarget = "",
    keep_packages: options.KeepPackages = False,
    while_clients_use_it: options.WhileClientsUseIt = False,
    dry_run: options.DryRun = False,
    as_json: Json = False,
) -> None:
    """Take back what was set up on this machine: files byte for byte, services as they were.

    Refuses while processes use a mount, or clients this server. Never removes a folder that
    holds something, and nothing that others have changed since.
    """
    from nfs_setup.request import UndoRequest

    request = UndoRequest(
        target=target,
        keep_packages=keep_packages,
        while_clients_use_it=while_clients_use_it,
        dry_run=dry_run,
    )
    _answer(request, as_json)


def _answer(request: Request, as_json: bool) -> None:
    from dispatcher.cli.nfs.shown import show_report, show_step
    from nfs_setup.errors import RequestRefused, RollbackFailed, SetupError
    from nfs_setup.local_host import LocalHost
    from nfs_setup.verbs import perform

    try:
        report = perform(LocalHost(), request, (lambda _: None) if as_json else show_step)
    except RequestRefused as error:
        raise UserError(error.message, hint=error.hint, where=error.where) from error
    except SetupError as error:
        hint = error.hint
        if not isinstance(error, RollbackFailed) and getattr(request, "dry_run", True) is False:
            hint = f"{hint}\nnothing was left half done".strip()
        raise PermanentBackendError(error.message, hint=hint, where=error.where) from error
    except AssertionError as error:
        raise InternalError(str(error)) from error
    if as_json:
        print_json(report.plain())
        return
    show_report(report)
