"""``bequeath nfs``: an NFS share set up and taken back, on the machine it is run on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Json
from dispatcher.cli.lazy_group import CommandEntry, Table
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

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show each diff and command; change nothing. Needs no root."),
]


def server(
    path: Annotated[str, typer.Argument(metavar="DIR", help="The folder to export.")],
    clients: Annotated[
        list[str],
        typer.Argument(
            metavar="CLIENT",
            help="Who may mount it: host names, addresses, networks (10.0.0.0/24) or @netgroups.",
        ),
    ],
    owner: Annotated[
        str,
        typer.Option(
            metavar="USER",
            help="Who owns the folder, by name or number: the user that trials run as. "
            "If not given, and the folder is to be made: who called sudo.",
        ),
    ] = "",
    group: Annotated[
        str, typer.Option(metavar="GROUP", help="Its group; the owner's own if not given.")
    ] = "",
    mode: Annotated[
        str,
        typer.Option(metavar="MODE", help="Its mode; 2770 (set-gid) for a folder that is made."),
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="Clients may not write.")] = False,
    sec: Annotated[
        str,
        typer.Option(metavar="FLAVOURS", help="Security: sys, krb5, krb5i, krb5p, or sys:krb5p."),
    ] = "sys",
    no_root_squash: Annotated[
        bool, typer.Option("--no-root-squash", help="Let root of any client be root here.")
    ] = False,
    async_: Annotated[
        bool, typer.Option("--async", help="Answer before it is on disk; a crash loses writes.")
    ] = False,
    nfs3: Annotated[
        bool, typer.Option("--nfs3", help="Leave NFSv3 and rpcbind as they are, not off.")
    ] = False,
    open_firewall: Annotated[
        bool,
        typer.Option("--open-firewall", help="Set the rule (firewalld, ufw), not just print it."),
    ] = False,
    shares_its_file_system: Annotated[
        bool,
        typer.Option(
            "--shares-its-file-system",
            help="Allow a folder that is no file system of its own: root of a client may then "
            "reach all of the file system that it lies on.",
        ),
    ] = False,
    allow_wildcards: Annotated[
        bool, typer.Option("--allow-wildcards", help="Allow clients such as *.example.org.")
    ] = False,
    allow_everybody: Annotated[
        bool, typer.Option("--allow-everybody", help="Allow '*' and networks of all addresses.")
    ] = False,
    dry_run: DryRun = False,
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
    source: Annotated[str, typer.Argument(metavar="SERVER:/DIR", help="The share.")],
    point: Annotated[str, typer.Argument(metavar="DIR", help="Where to mount it.")],
    last: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="How it lasts: automount (units of systemd), fstab, no (until the next boot), "
            "or auto: automount where systemd runs, else fstab.",
        ),
    ] = "auto",
    nfs_version: Annotated[
        str, typer.Option("--nfs-version", metavar="VERSION", help="4.2, 4.1, 4.0, or 4.")
    ] = "4.2",
    sec: Annotated[
        str, typer.Option(metavar="FLAVOUR", help="Security: sys, krb5, krb5i or krb5p.")
    ] = "sys",
    read_only: Annotated[bool, typer.Option("--read-only", help="Mount it read-only.")] = False,
    nconnect: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="Connections to the server.")
    ] = 4,
    actimeo: Annotated[
        int,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How old attributes may be; 0: the kernel's own times (3 to 60 s), which fit.",
        ),
    ] = 0,
    noexec: Annotated[bool, typer.Option("--noexec", help="Run no program from it.")] = False,
    atime: Annotated[bool, typer.Option("--atime", help="Keep times of reading.")] = False,
    dry_run: DryRun = False,
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
    target: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="An exported folder or a mount point; all if left out.",
            show_default=False,
        ),
    ] = "",
    keep_packages: Annotated[
        bool, typer.Option("--keep-packages", help="Leave installed what was installed for it.")
    ] = False,
    while_clients_use_it: Annotated[
        bool,
        typer.Option("--while-clients-use-it", help="Their programs get errors, and lose work."),
    ] = False,
    dry_run: DryRun = False,
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
